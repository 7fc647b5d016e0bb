#include "cmd_chat_show.h"
#include "plain.h"
#include "text.h"
#include <stdio.h>
#include <unistd.h>

#define DIM "\033[2m"
#define PLAIN "\033[0m"

void chat_show_open(struct chat_show *s, int hide_thinking, int quiet)
{
    memset(s, 0, sizeof *s);
    s->terminal = isatty(STDOUT_FILENO);
    s->hide_thinking = hide_thinking || (quiet && !s->terminal);
}

void chat_show_close(struct chat_show *s)
{
    free(s->text[0].at);
    free(s->text[1].at);
}

void chat_show_begin(struct chat_show *s)
{
    s->text[0].n = s->text[1].n = 0;
    s->shown = s->line_begun = 0;
}

static void put_behind_bars(struct chat_show *s, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!s->line_begun) fputs("| ", stderr);
        putc(text[i], stderr);
        s->line_begun = text[i] != '\n';
    }
}

static void change_part(struct chat_show *s, enum q_part part)
{
    if (s->shown && part == s->part) return;
    if (s->terminal && s->shown) fputs(PLAIN "\n\n", stdout);
    else if (s->terminal && part == Q_PART_THINKING) fputs(DIM, stdout);
    else if (s->shown && s->part == Q_PART_THINKING && s->line_begun) fputs("\n", stderr);
    s->shown = 1;
    s->part = part;
}

int chat_show_text(struct chat_show *s, enum q_part part, const char *text, size_t n)
{
    if (q_text_add(&s->text[part], text, n, NULL)) return 1;
    if (part == Q_PART_THINKING && s->hide_thinking) return 0;
    change_part(s, part);
    if (s->terminal) plain_print(stdout, text, n);
    else if (part == Q_PART_THINKING) put_behind_bars(s, text, n);
    else fwrite(text, 1, n, stdout);
    return fflush(stdout);
}

int chat_show_end(struct chat_show *s, int failed)
{
    if (failed && !s->shown) return 0;
    if (s->terminal && s->shown && s->part == Q_PART_THINKING) fputs(PLAIN, stdout);
    else if (!s->terminal && s->shown && s->part == Q_PART_THINKING && s->line_begun) fputs("\n", stderr);
    fputs(s->terminal ? "\n\n" : "\n", stdout);
    fflush(stdout);
    return q_text_add(&s->text[0], "", 1, NULL) || q_text_add(&s->text[1], "", 1, NULL);
}
