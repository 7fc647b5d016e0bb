/* Characters as the line editor can place them. It counts every character as one column at least, but joiners and variation selectors
 * (which hold emoji together) take none on the screen, nor do the letters of decomposed text (Hangul pasted from a Mac): behind them the cursor
 * would stand wrong. So decomposed characters are composed as they come in (NFC of two), and what joins is shown while the line is
 * edited by a stand-in from the last private plane, one column wide; the text that is sent has the character again.
 */
#ifndef Q_CMD_CHAT_WIDTH_H
#define Q_CMD_CHAT_WIDTH_H

#include <stddef.h>
#include <wchar.h>

/* Whether `c` may join the character before it. */
int chat_width_is_mark(wchar_t c);
/* Both as one character, or 0. */
wchar_t chat_width_composed(wchar_t a, wchar_t b);
/* c, or its stand-in. */
wchar_t chat_width_shown(wchar_t c);
/* Puts characters for their stand-ins into the UTF-8 text s[0..n), zero-terminated; returns its new length, at most n. */
size_t chat_width_back(char *s, size_t n);

#endif
