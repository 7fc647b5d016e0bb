/* What to say about a word of the command line that is no option here: the nearest that is one, or what stands here for an option of
 * llama.cpp's, from where many come. */
#ifndef Q_OPTION_WORDS_H
#define Q_OPTION_WORDS_H

#include <getopt.h>
#include <stddef.h>

/* The nearest of some names: at most two letters added, left out, replaced or swapped with their neighbours, one where the word is short. */
struct near {
    const char *word, *best;   /* borrowed; best: NULL while none is near */
    int distance;
};
void near_start(struct near *n, const char *word);
void near_try(struct near *n, const char *name);

/* The word that getopt_long looks at next: the first that may be an option; "": none is left. */
const char *option_next_word(int argc, char **argv);
/* What a verb has instead of `word`, an option as llama.cpp spells it that this verb has not; NULL: it is none. */
const char *option_instead(const char *verb, const char *word, const char *shorts, const struct option *longs);
/* The option that a single dash hides, `-temp` for `--temp`: its name; NULL: none. */
const char *option_one_dash(const char *word, const struct option *longs);
/* The end of a line about an unknown option: "; is '--temp' meant?", or "" where none is near. */
void option_near(char *text, size_t cap, const char *word, const struct option *longs);

/* The line about an option that was given again with another value. name: as the user writes it. */
void option_twice(char *line, size_t cap, const char *name, const char *counts, const char *does_not);

#endif
