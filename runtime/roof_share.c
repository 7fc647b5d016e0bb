#include "roof.h"
#include <stdio.h>

/* Two measurements that were not made at the same moment. */
#define ABOUT_ALL 105.0

enum roof_share roof_share(double *pct, int by_bytes)
{
    enum roof_share share = *pct <= ABOUT_ALL ? ROOF_PART : by_bytes ? ROOF_CACHE : ROOF_OVER;
    if (*pct > 100) *pct = 100;
    return share;
}

enum roof_share roof_text(char dst[ROOF_TEXT], double pct, int by_bytes, int digits)
{
    enum roof_share share = roof_share(&pct, by_bytes);
    if (share == ROOF_CACHE) snprintf(dst, ROOF_TEXT, "in cache");
    else snprintf(dst, ROOF_TEXT, "%s%.*f %%", share == ROOF_OVER ? ">" : "", digits, pct);
    return share;
}
