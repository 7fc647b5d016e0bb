/* Notices: what is odd about a file but no reason to refuse it, one line each, gathered while it is read. */
#ifndef Q_NOTES_H
#define Q_NOTES_H

struct q_notes {
    char *text;      /* owned; lines separated by '\n'; NULL while empty */
    int failed;      /* an allocation failed: lines may be missing */
};

/* Adds a line. `n` may be NULL: nobody listens. */
void q_note(struct q_notes *n, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
