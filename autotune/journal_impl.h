/* Inside the journal: shared by its writer, its readers and compaction. */
#ifndef Q_JOURNAL_IMPL_H
#define Q_JOURNAL_IMPL_H

#include "journal.h"
#include <cjson/cJSON.h>

/* A session stops taking evidence (checked, time) at the first size, anything at the second. Readers take no larger file and no longer line. */
enum { JOURNAL_FULL = 24 << 20, JOURNAL_MOST = 32 << 20, JOURNAL_LINE = 256 * 1024, JOURNAL_DEPTH = 16, JOURNAL_NUMBER = 8 };

/* "00000012", the names of a folder's sessions, ascending. */
struct journal_names {
    char (*v)[JOURNAL_NUMBER + 1];    /* owned */
    int n;
};
/* Q_OK with none where there is no folder. */
int journal_names(struct journal_names *l, const char *dir, struct q_err *e);
/* DIR/NAME.jsonl */
int journal_path(char dst[Q_PATH], const char *dir, const char *name, struct q_err *e);
/* Keys ascending; then the text with a newline behind it, owned by the caller, NULL when memory is short. */
char *journal_print(cJSON *o);
/* Which start of the machine this is; "" where the system does not tell. */
void journal_boot(char dst[64]);
/* Copies a text of at most cap - 1 bytes; non-zero when there is none. */
int journal_text(const cJSON *o, const char *name, char *dst, size_t cap);

#endif
