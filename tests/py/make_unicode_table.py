"""Makes runtime/unicode_table.c: `python3 tests/py/make_unicode_table.py > runtime/unicode_table.c`.

Classes L, M, N and white space are probed out of PyPI's `tokenizers` (the version named in PINNED) by running its Split
regex over every code point, so that the split agrees with the reference on code points where Unicode versions differ. The
SLOW bit (normalisation may change, move or join this character) comes from utf8proc, the library that normalises.
"""
import ctypes
import sys
import unicodedata

import tokenizers
from tokenizers import Regex, pre_tokenizers

PINNED = "0.23.3"
LIMIT = 0x110000
OTHER, LETTER, MARK, NUMBER, SPACE = range(5)
NAMES = ["UC_OTHER", "UC_LETTER", "UC_MARK", "UC_NUMBER", "UC_SPACE"]
SLOW = 8
SURROGATES = range(0xD800, 0xE000)


def member(pattern):
    """Code point -> does the reference's engine put it in this class?"""
    split = pre_tokenizers.Split(Regex(pattern + "+"), "removed")
    return lambda c: c not in SURROGATES and not split.pre_tokenize_str(chr(c))


def classes():
    probes = [(LETTER, member(r"\p{L}")), (MARK, member(r"\p{M}")), (NUMBER, member(r"\p{N}")), (SPACE, member(r"\s"))]
    out = bytearray(LIMIT)
    for value, probe in probes:
        for c in filter(probe, range(LIMIT)):
            assert out[c] == OTHER, f"U+{c:04X} is in two classes"
            out[c] = value
    return out


class Utf8proc:
    """The few calls of the C library that are needed, over single code points."""

    def __init__(self):
        self.lib = ctypes.CDLL("libutf8proc.so.2")
        self.lib.utf8proc_unicode_version.restype = ctypes.c_char_p
        self.lib.utf8proc_get_property.restype = ctypes.POINTER(ctypes.c_int16)
        self.lib.utf8proc_NFC.restype = ctypes.c_void_p
        self.lib.utf8proc_NFD.restype = ctypes.c_void_p
        self.free = ctypes.CDLL(None).free
        self.free.argtypes = [ctypes.c_void_p]
        self.version = self.lib.utf8proc_unicode_version().decode()

    def assigned(self, c):
        return self.lib.utf8proc_category(c) != 0

    def combining_class(self, c):
        return self.lib.utf8proc_get_property(c)[1]     # struct utf8proc_property_t: category, combining_class, ...

    def form(self, function, c):
        p = function(chr(c).encode())
        text = ctypes.string_at(p).decode()
        self.free(p)
        return text


def slow_set(u):
    """Unassigned, reordered, changed by NFC, or able to join the character before (the last part of some composite)."""
    slow = set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))
    for c in range(1, LIMIT):
        if c in SURROGATES:
            continue
        if not u.assigned(c):
            slow.add(c)
            continue
        nfd = u.form(u.lib.utf8proc_NFD, c)
        nfc = u.form(u.lib.utf8proc_NFC, c)
        if u.combining_class(c) or nfc != chr(c):
            slow.add(c)
        elif len(nfd) > 1 and not 0xAC00 <= c < 0xD7A4:
            slow.add(ord(nfd[-1]))
    return slow


def ranges(values):
    first = 0
    for c in range(1, LIMIT + 1):
        if c == LIMIT or values[c] != values[first]:
            yield first, c - 1, values[first]
            first = c


def main():
    assert tokenizers.__version__ == PINNED, f"needs tokenizers {PINNED}, found {tokenizers.__version__}"
    u = Utf8proc()
    assert u.combining_class(0x301) == 230 and u.combining_class(0x316) == 220
    values = classes()
    for c in slow_set(u):
        values[c] |= SLOW
    rows = [r for r in ranges(values) if r[2] != SLOW]      # a gap means: UC_OTHER | UC_SLOW
    print(f"""/* Made by tests/py/make_unicode_table.py from PyPI tokenizers {PINNED} (classes) and utf8proc with Unicode {u.version} (UC_SLOW).
 * Do not edit. Code points in no range are UC_OTHER | UC_SLOW: unassigned, or plain marks of no class. */
#include "unicode.h"

const struct uc_range uc_ranges[] = {{""")
    items = (f"{{0x{first:04X}, 0x{last:04X}, {NAMES[v & 7]}{' | UC_SLOW' if v & SLOW else ''}}}," for first, last, v in rows)
    line = "   "
    for item in items:
        if len(line) + 1 + len(item) > 150:
            print(line)
            line = "   "
        line += " " + item
    print(line)
    print(f"}};\nconst unsigned uc_range_count = {len(rows)};")


if __name__ == "__main__":
    sys.exit(main())
