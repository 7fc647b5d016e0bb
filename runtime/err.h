/* Errors: a code and one line of text, carried up to whoever asked. Nothing below a main prints or exits.
 *
 * A fallible function returns 0 (Q_OK) or a code, and writes the line into the caller's `struct q_err`. The line says
 * what was expected and what was found, names the file and the field, tensor or token it is about, and has no newline.
 */
#ifndef Q_ERR_H
#define Q_ERR_H

enum q_code {
    Q_OK = 0,
    Q_EINPUT,   /* a file, prompt or argument is malformed */
    Q_EUNSUP,   /* well formed, but not supported by this version */
    Q_ELIMIT,   /* does not fit: context, memory, slots */
    Q_EMEM,     /* an allocation failed */
    Q_EIO,      /* the system refused: open, read, map, spawn */
    Q_EMISS,    /* something looked up is not there (an object, a record) */
    Q_EINTERNAL /* a promise of this program was broken */
};

struct q_err {
    int code;
    char text[1024];
};

/* Fills *e (may be NULL) and returns `code`, so that a caller writes `return q_fail(e, Q_EINPUT, "...")`.
 * Control characters that came in with an argument are shown as '?'; a longer text is cut at a UTF-8 boundary. */
int q_fail(struct q_err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
