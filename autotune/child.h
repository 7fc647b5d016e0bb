/* One child program whose stdout (and stderr) come back through a pipe. No shell, no inherited signals masked. */
#ifndef Q_CHILD_H
#define Q_CHILD_H

#include "runtime/err.h"
#include <sys/types.h>

struct child {
    pid_t pid;       /* and the id of its process group */
    int fd;          /* read end of its output; owned */
};

/* argv[0] is looked up on the PATH unless it holds a '/'. dir: working directory, and where its temporary files go, so that they go with
 * it even where the child is killed; NULL: this one's. Q_EMISS: no such program. */
int child_start(struct child *c, char *const *argv, const char *dir, struct q_err *e);
/* The same with a pipe to its stdin, whose write end is *to_child (owned by the caller); its stderr stays this program's. */
int child_start_talk(struct child *c, char *const *argv, int *to_child, struct q_err *e);
/* The line and an end of line. Non-zero: it does not read any more. */
int child_tell(int to_child, const char *line);
enum child_news { CHILD_CAME, CHILD_ENDED, CHILD_LATE, CHILD_INTERRUPTED, CHILD_NOISE };
/* Waits until it says something, *n bytes of at most `room` into `to`. deadline: of clock_s. CHILD_INTERRUPTED: signal_fd can be read (-1: none).
 * CHILD_NOISE is a caller's, who got more than he can use. */
enum child_news child_hear(const struct child *c, int signal_fd, double deadline, char *to, size_t room, size_t *n);
/* Kills the child and all that it started. */
void child_kill(const struct child *c);
/* Waits, closes the pipe. *status: exit status, or 128 + signal. */
int child_end(struct child *c, int *status, struct q_err *e);
/* Runs to the end and gives the first line of output ("" if none). Q_EIO where it takes longer than CHILD_ANSWER_S or a signal that the
 * caller has blocked (SIGINT, SIGTERM, SIGHUP) arrives meanwhile, which stays pending: it is killed then. */
enum { CHILD_ANSWER_S = 20 };
int child_first_line(char *const *argv, char *line, size_t cap, int *status, struct q_err *e);

#endif
