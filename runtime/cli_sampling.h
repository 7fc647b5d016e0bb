/* The sampling options of `run` and `chat`. Their values lie between CLI_OWN and CLI_SAMPLING_END; a verb's own options come behind. */
#ifndef Q_CLI_SAMPLING_H
#define Q_CLI_SAMPLING_H

#include "cli.h"

enum {
    CLI_TEMP = CLI_OWN, CLI_TOP_K, CLI_TOP_P, CLI_MIN_P, CLI_SEED, CLI_REPEAT, CLI_FREQUENCY, CLI_PRESENCE, CLI_SAMPLING_END
};
#define CLI_SAMPLING_LONG                                                                                                          \
    {"temp", 1, 0, CLI_TEMP}, {"top-k", 1, 0, CLI_TOP_K}, {"top-p", 1, 0, CLI_TOP_P}, {"min-p", 1, 0, CLI_MIN_P},                   \
        {"seed", 1, 0, CLI_SEED}, {"repeat-penalty", 1, 0, CLI_REPEAT}, {"frequency-penalty", 1, 0, CLI_FREQUENCY},                 \
        {"presence-penalty", 1, 0, CLI_PRESENCE}
extern const char cli_sampling_help[];

struct cli_sampling {
    struct q_sampling_params params;
    unsigned given;              /* a bit an option */
};

void cli_sampling_start(struct cli_sampling *s);
static inline int cli_is_sampling(int opt) { return opt >= CLI_TEMP && opt < CLI_SAMPLING_END; }
/* Takes such an option; 0, or -1 after a line on stderr when its value is no number. q_sampling_check judges the ranges. */
int cli_sampling_option(struct cli_sampling *s, const struct q_cli *c, int opt, const char *value);
static inline int cli_sampling_given(const struct cli_sampling *s, int opt) { return (int)(s->given >> (opt - CLI_TEMP) & 1); }
/* Draws a seed where one is needed and none was given. */
void cli_sampling_seed(struct cli_sampling *s);
/* Tells the seed in use, if one is. */
void cli_sampling_fact(const struct cli_sampling *s, const struct q_cli *c);

#endif
