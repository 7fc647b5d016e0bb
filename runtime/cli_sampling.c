#include "cli_sampling.h"
#include <time.h>

const char cli_sampling_help[] =
    "  --temp T            temperature (default 0: the likeliest token)\n"
    "  --top-k N, --top-p P, --min-p P, --seed N    (--top-k 0: all tokens; --seed -1: drawn, as without)\n"
    "  --repeat-penalty R, --frequency-penalty F, --presence-penalty P\n";

void cli_sampling_start(struct cli_sampling *s) { *s = (struct cli_sampling){.params = q_sampling_default()}; }

int cli_sampling_option(struct cli_sampling *s, const struct q_cli *c, int opt, const char *value)
{
    double v;
    long n;
    struct { int opt; const char *name; float *to; } real[] = {
        {CLI_TEMP, "--temp", &s->params.temp},
        {CLI_TOP_P, "--top-p", &s->params.top_p},
        {CLI_MIN_P, "--min-p", &s->params.min_p},
        {CLI_REPEAT, "--repeat-penalty", &s->params.repeat},
        {CLI_FREQUENCY, "--frequency-penalty", &s->params.frequency},
        {CLI_PRESENCE, "--presence-penalty", &s->params.presence}};
    for (size_t i = 0; i < sizeof real / sizeof *real; i++) {
        if (real[i].opt != opt) continue;
        if (cli_float(c, real[i].name, value, &v)) return -1;
        *real[i].to = (float)v;
        s->given |= 1u << (opt - CLI_TEMP);
        return 0;
    }
    if (cli_int(c, opt == CLI_TOP_K ? "--top-k" : "--seed", value, -1, 0x7FFFFFFFFFFFFFFF, &n)) return -1;
    if (opt == CLI_TOP_K) s->params.top_k = n < 0 || n > 1 << 30 ? 0 : (int)n;
    else s->params.seed = (uint64_t)n;
    s->given |= 1u << (opt - CLI_TEMP);
    if (opt == CLI_SEED && n < 0) s->given &= ~(1u << (opt - CLI_TEMP));   /* as if it had not been said: one is drawn */
    return 0;
}

void cli_sampling_seed(struct cli_sampling *s)
{
    if (s->params.temp > 0 && !cli_sampling_given(s, CLI_SEED)) s->params.seed = (uint64_t)time(NULL);
}

void cli_sampling_fact(const struct cli_sampling *s, const struct q_cli *c)
{
    if (s->params.temp > 0) cli_fact(c, "seed %llu", (unsigned long long)s->params.seed);
}
