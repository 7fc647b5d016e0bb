/* The byte-mapped form: GPT-2's way to write any bytes as printable text. A byte that Latin-1 prints stands for itself; the
 * other 68 (controls, space, 0x7F to 0xA0, the soft hyphen) are numbered from U+0100 in ascending order. */
#include "tok_impl.h"

static int prints(unsigned b)
{
    return (b >= 33 && b <= 126) || (b >= 161 && b != 173);
}

/* How many bytes below b do not print. */
static unsigned hidden_below(unsigned b)
{
    if (b <= 33) return b;
    if (b <= 127) return 33;
    if (b <= 161) return 33 + (b - 127);
    return b <= 173 ? 67 : 68;
}

size_t tok_map_byte(unsigned char b, char *dst)
{
    unsigned cp = prints(b) ? b : 0x100 + hidden_below(b);
    if (cp < 0x80) return dst[0] = (char)cp, 1;
    dst[0] = (char)(0xC0 | cp >> 6);
    dst[1] = (char)(0x80 | (cp & 0x3F));
    return 2;
}

/* The byte that code point cp stands for, or -1. */
static int byte_of(uint32_t cp)
{
    if (cp < 0x100) return prints(cp) ? (int)cp : -1;
    unsigned k = cp - 0x100;
    if (k < 33) return (int)k;
    if (k < 67) return (int)(127 + (k - 33));
    return k == 67 ? 173 : -1;
}

ptrdiff_t tok_unmap(const char *s, size_t n, char *dst)
{
    ptrdiff_t k = 0;
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        i += utf8_get((const unsigned char *)s + i, &cp);
        int b = byte_of(cp);
        if (b < 0) return -1;
        dst[k++] = (char)b;
    }
    return k;
}
