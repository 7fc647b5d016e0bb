#define _GNU_SOURCE
#include "cmd_chat_term.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

static const int ends[] = {SIGTERM, SIGHUP, SIGQUIT};

static struct {
    int open, marks;
    struct termios found, active;     /* before this program; now */
    volatile sig_atomic_t resumed;
} term;

static void put(const char *s)
{
    if (write(STDOUT_FILENO, s, strlen(s)) < 0) return;   /* a terminal that is gone needs no marks */
}

static void leave(void)
{
    if (term.marks) put("\033[?2004l");
    tcsetattr(STDIN_FILENO, TCSANOW, &term.found);
}

/* In the background the terminal is another's: the `fg` to come is told by another SIGCONT. */
static void enter(void)
{
    if (tcgetpgrp(STDIN_FILENO) != getpgrp()) return;
    tcsetattr(STDIN_FILENO, TCSANOW, &term.active);
    if (term.marks) put("\033[?2004h");
    term.resumed = 1;
}

/* The signal again, with its usual effect. Returns after a stop, or where a stop means nothing (no shell waits). */
static void raise_default(int number)
{
    struct sigaction usual = {.sa_handler = SIG_DFL}, ours;
    sigset_t it;
    sigemptyset(&it);
    sigaddset(&it, number);
    sigaction(number, &usual, &ours);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &it, NULL);   /* here it happens */
    sigaction(number, &ours, NULL);
}

static void on_end(int number)
{
    leave();
    raise_default(number);
}

static void on_stop(int number)
{
    int saved = errno;
    leave();
    raise_default(number);
    enter();
    errno = saved;
}

/* Also after a SIGSTOP, which nobody sees coming. */
static void on_continue(int number)
{
    int saved = errno;
    enter();
    errno = saved;
}

static void handle(int number, void (*handler)(int))
{
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&a.sa_mask);
    sigaction(number, &a, NULL);
}

void chat_term_open(int marks)
{
    if (tcgetattr(STDIN_FILENO, &term.found)) return;
    term.active = term.found;
    term.marks = marks;
    term.open = 1;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) handle(ends[i], on_end);
    handle(SIGTSTP, on_stop);
    handle(SIGCONT, on_continue);
    if (marks) put("\033[?2004h");
}

void chat_term_close(void)
{
    if (!term.open) return;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) handle(ends[i], SIG_DFL);
    handle(SIGTSTP, SIG_DFL);
    handle(SIGCONT, SIG_DFL);
    term.open = 0;
    leave();
}

void chat_term_note(void)
{
    if (term.open) tcgetattr(STDIN_FILENO, &term.active);
}

int chat_term_resumed(void)
{
    int was = term.resumed;
    term.resumed = 0;
    return was;
}
