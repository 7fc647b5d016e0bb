#include "err.h"
#include "plain.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Drops a UTF-8 character that vsnprintf cut in half at the end of s. */
static void trim_partial_utf8(char *s)
{
    size_t n = strlen(s), back = 0;
    while (back < 4 && back < n && ((unsigned char)s[n - 1 - back] & 0xC0) == 0x80) back++;
    if (back >= n) return;
    unsigned char lead = (unsigned char)s[n - 1 - back];
    size_t need = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
    if (need > back) s[n - 1 - back] = 0;
}

int q_fail(struct q_err *e, int code, const char *fmt, ...)
{
    if (!e) return code;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    if (n >= (int)sizeof e->text) trim_partial_utf8(e->text);
    plain_line(e->text);
    e->code = code;
    return code;
}
