/* Records from anywhere: reading never crashes, and what is read can be written and read again as the same record. */
#include "record.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct record r, again;
    struct q_err e;
    if (record_parse(&r, (const char *)data, n, "fuzz", &e)) return 0;
    char *text = record_print(&r);
    if (!text) return 0;
    if (record_parse(&again, text, strlen(text), "fuzz", &e) || memcmp(&r, &again, sizeof r)) abort();
    free(text);
    return 0;
}
