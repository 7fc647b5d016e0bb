/* GET /: the chat page, one file made of server/web/ at build.
 *
 * The browser is told to run the page's own script and style, by their hashes, and nothing else; to talk to this server alone; and to
 * parse no text as HTML while the page runs. What a model writes can then do nothing, even where the page had a mistake. */
#include "api.h"
#include "web_page.h"
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#define HASH_TEXT sodium_base64_ENCODED_LEN(crypto_hash_sha256_BYTES, sodium_base64_VARIANT_ORIGINAL)

/* SHA-256, in base64, of what stands between the first `open` and the next `close`. */
static void hash_between(const char *open, const char *close, char out[HASH_TEXT])
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    const char *from = strstr(web_page, open), *to = from ? strstr(from, close) : NULL;
    *out = 0;
    if (!to) return;
    from += strlen(open);
    crypto_hash_sha256(hash, (const unsigned char *)from, (unsigned long long)(to - from));
    sodium_bin2base64(out, HASH_TEXT, hash, sizeof hash, sodium_base64_VARIANT_ORIGINAL);
}

void api_page(struct http_request *rq)
{
    char script[HASH_TEXT], style[HASH_TEXT], policy[512];
    hash_between("<script type=\"module\">", "</script>", script);
    hash_between("<style>", "</style>", style);
    snprintf(policy, sizeof policy,
             "default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; connect-src 'self'; img-src data:; base-uri 'none'; "
             "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
             script, style);
    const char *const headers[] = {"Content-Type", "text/html; charset=utf-8", "Content-Security-Policy", policy, "Cache-Control", "no-cache",
                                   "Referrer-Policy", "no-referrer", NULL};
    http_reply_static(rq, web_page, web_page_size, headers);
}
