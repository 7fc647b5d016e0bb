#include "cmd_chat_width.h"
#include <string.h>
#include <utf8proc.h>

/* Stand-ins are those of a block of 256 with the same last byte. */
static const struct { utf8proc_int32_t first, last, block; } joining[] = {
    {0x200B, 0x200F, 0x10FD00},      /* zero-width spaces and joiners, marks of direction */
    {0x2060, 0x2060, 0x10FD00},      /* word joiner */
    {0xFE00, 0xFE0F, 0x10FE00},      /* variation selectors */
    {0xE0020, 0xE007F, 0x10FF00},    /* tags: the flags of regions */
};
enum { N_JOINING = sizeof joining / sizeof *joining };

int chat_width_is_mark(wchar_t c)
{
    if (c < 0x300) return 0;
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC || (c >= 0x1160 && c <= 0x11FF);   /* vowels and final consonants of Hangul */
}

wchar_t chat_width_composed(wchar_t a, wchar_t b)
{
    utf8proc_int32_t both[2] = {(utf8proc_int32_t)a, (utf8proc_int32_t)b};
    return utf8proc_normalize_utf32(both, 2, UTF8PROC_COMPOSE | UTF8PROC_STABLE) == 1 ? (wchar_t)both[0] : 0;
}

wchar_t chat_width_shown(wchar_t c)
{
    for (int i = 0; i < N_JOINING; i++)
        if (c >= joining[i].first && c <= joining[i].last) return (wchar_t)(joining[i].block | (c & 0xFF));
    return c;
}

static utf8proc_int32_t original(utf8proc_int32_t c)
{
    for (int i = 0; i < N_JOINING; i++) {
        utf8proc_int32_t was = (joining[i].first & ~0xFF) | (c & 0xFF);
        if ((c & ~0xFF) == joining[i].block && was >= joining[i].first && was <= joining[i].last) return was;
    }
    return c;
}

/* An original has at most the four bytes of its stand-in. */
size_t chat_width_back(char *s, size_t n)
{
    size_t to = 0;
    utf8proc_int32_t c;
    for (size_t at = 0; at < n;) {
        utf8proc_ssize_t took = utf8proc_iterate((const utf8proc_uint8_t *)s + at, (utf8proc_ssize_t)(n - at), &c);
        utf8proc_int32_t was = took == 4 ? original(c) : c;
        if (took == 4 && was != c) {
            to += (size_t)utf8proc_encode_char(was, (utf8proc_uint8_t *)s + to);
        } else {
            size_t same = took > 0 ? (size_t)took : 1;
            memmove(s + to, s + at, same);
            to += same;
        }
        at += took > 0 ? (size_t)took : 1;
    }
    s[to] = 0;
    return to;
}
