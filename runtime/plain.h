/* Text from outside (a model, a file, a client, a server) on its way to a terminal or into a line of a log: what would be obeyed
 * there instead of shown becomes '?'. Those are the control characters of ASCII and, in UTF-8, U+0080 to U+009F, which terminals obey as
 * ESC and a letter. */
#ifndef Q_PLAIN_H
#define Q_PLAIN_H

#include <stdio.h>

/* Bytes of the control character that s [n] begins with; 0: none. */
static inline size_t plain_control(const char *s, size_t n)
{
    const unsigned char *c = (const unsigned char *)s;
    if (c[0] < 0x20 || c[0] == 0x7F) return 1;
    return n > 1 && c[0] == 0xC2 && c[1] >= 0x80 && c[1] <= 0x9F ? 2 : 0;
}

static inline void plain_line(char *s)
{
    for (size_t n; *s; s++) {
        n = plain_control(s, s[1] ? 2 : 1);
        if (n) *s = '?';
        if (n > 1) *++s = '?';
    }
}

/* Lines and tabs stay. s: whole characters. */
static inline void plain_print(FILE *f, const char *s, size_t n)
{
    for (size_t i = 0, k; i < n; i += k ? k : 1) {
        k = s[i] == '\n' || s[i] == '\t' ? 0 : plain_control(s + i, n - i);
        putc(k ? '?' : (unsigned char)s[i], f);
    }
}

#endif
