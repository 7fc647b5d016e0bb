/* The chat page as it is served: server/web/ joined by its join.lua and put into the program by runtime/embed.lua. */
#ifndef S_WEB_PAGE_H
#define S_WEB_PAGE_H

#include <stddef.h>

extern const char web_page[];      /* zero-terminated */
extern const size_t web_page_size; /* without the zero */

#endif
