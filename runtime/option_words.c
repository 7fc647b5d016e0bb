#include "option_words.h"
#include <stdio.h>
#include <string.h>

enum { LONGEST = 40 };   /* of a name; a longer word is near to none */

static int least(int a, int b, int c)
{
    int m = a < b ? a : b;
    return m < c ? m : c;
}

/* Letters to add, leave out or replace, and neighbours to swap, until a is b: d[i][j] of their first i and j. */
static int edits(const char *a, const char *b)
{
    unsigned char d[LONGEST + 1][LONGEST + 1];
    int n = (int)strlen(a), m = (int)strlen(b);
    for (int i = 0; i <= n; i++)
        for (int j = 0; j <= m; j++) {
            int best = !i ? j : !j ? i : least(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            int swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] ? d[i - 2][j - 2] + 1 : best;
            d[i][j] = (unsigned char)(swap < best ? swap : best);
        }
    return d[n][m];
}

void near_start(struct near *n, const char *word)
{
    size_t length = strlen(word + strspn(word, "-"));
    *n = (struct near){.word = word, .distance = strlen(word) > LONGEST ? 0 : length > 4 ? 3 : length > 2 ? 2 : 0};
}

void near_try(struct near *n, const char *name)
{
    if (!n->distance || strlen(name) > LONGEST) return;
    int d = edits(n->word, name);
    if (d >= n->distance) return;
    n->distance = d;
    n->best = name;
}

/* Verbs that open an engine. */
#define ENGINE " run chat bench eval serve "
#define LAYERS "nothing is needed, every layer lies on the device that --device chooses"
#define ONE_DEVICE "this version runs on one device, which --device cuda:N chooses"
#define BATCHES "nothing is needed, the plan of memory says how long a step is"
#define THINKS "here --think (run, chat) and --chat-template-kwargs '{\"enable_thinking\": false}' (serve) say whether it thinks"
#define NO_FETCH "quarry fetches no files, a model of this machine goes behind -m"
#define CHECKPOINTS "here --cache-device SIZE, --cache-host SIZE and --cache-every N say which checkpoints are kept"
#define ONE_PROMPT "nothing is needed, run answers one prompt (--raw: without the chat template)"

/* names and verbs: words between spaces. Of two rows that fit, the first. */
static const struct foreign {
    const char *names, *verbs, *instead;
} foreign[] = {
    {" -ngl --gpu-layers --n-gpu-layers -nkvo --no-kv-offload ", ENGINE "tune show ", LAYERS},
    {" -fa --flash-attn ", ENGINE "tune show ", "nothing is needed, attention always works that way"},
    {" -ctk --cache-type-k ", ENGINE "show tune ", "here it is --kv-k F: f16, q8, r4 or r3"},
    {" -ctv --cache-type-v ", ENGINE "show tune ", "here it is --kv-v F: f16, q8, r4 or r3"},
    {" --ctx-size ", ENGINE "show ", "here it is -c N"},
    {" -b --batch-size -ub --ubatch-size ", ENGINE, BATCHES},
    {" -tb --threads-batch ", ENGINE, "here -t N is for all of it"},
    {" --mlock --mmap --no-mmap -dio --direct-io ", ENGINE, "nothing is needed, the file is read as the device wants it"},
    {" --warmup --no-warmup ", ENGINE, "nothing is needed"},
    {" -dev ", ENGINE "tune ", "here it is --device D"},
    {" --list-devices ", ENGINE "tune ", "`quarry doctor` lists them"},
    {" -sm --split-mode -ts --tensor-split -mg --main-gpu ", ENGINE, ONE_DEVICE},
    {" -ot --override-tensor -cmoe --cpu-moe -ncmoe --n-cpu-moe ", ENGINE, LAYERS},
    {" -hf -hfr --hf-repo -hff --hf-file -mu --model-url ", ENGINE "tune show ", NO_FETCH},
    {" -md --model-draft --draft --draft-max --spec-type ", ENGINE, "this version drafts no tokens"},
    {" -mm --mmproj ", ENGINE, "this version reads no images"},
    {" --rope-scale ", ENGINE, "here it is --yarn-factor F"},
    {" --log-disable ", ENGINE, "here it is -q"},
    {" -s ", " run chat ", "here it is --seed N"},
    {" --temperature ", " run chat ", "here it is --temp T"},
    {" --predict --n-predict ", " run chat ", "here it is -n N"},
    {" -n --predict --n-predict ", " serve ", "a request says it (max_tokens)"},
    {" -sys --system-prompt ", " run chat ", "here it is --system TEXT"},
    {" -j ", " run ", "here it is --json-schema S"},
    {" -jf --json-schema-file ", " run ", "here it is --json-schema FILE"},
    {" --grammar-file ", " run ", "here it is --grammar FILE"},
    {" -cnv --conversation -i --interactive ", " run ", "`quarry chat` is for conversations"},
    {" -no-cnv --no-conversation -st --single-turn ", " run ", ONE_PROMPT},
    {" --prompt-cache ", " run ", "here it is --session FILE"},
    {" -p --prompt -f --file ", " chat ", "`quarry run` takes a prompt"},
    {" --jinja ", " run chat serve ", "nothing is needed, the file's own template is used"},
    {" -rea --reasoning --reasoning-budget --reasoning-format ", " run chat serve ", THINKS},
    {" -a ", " serve ", "here it is --alias NAME"},
    {" -np ", " serve ", "here it is --parallel N"},
    {" -cb --cont-batching ", " serve ", "nothing is needed, requests always share steps"},
    {" -kvu --kv-unified --cache-prompt --cache-reuse ", " serve ", "nothing is needed, what was read is always re-used"},
    {" -cram --cache-ram ", " serve ", "here it is --cache-host SIZE, as 8GiB"},
    {" -ctxcp --ctx-checkpoints --swa-checkpoints ", " serve ", CHECKPOINTS},
    {" --metrics --slots --props ", " serve ", "nothing is needed, it is always there"},
    {" -f --file ", " eval ", "here it is --text FILE"},
    {" --kl-divergence --kl-divergence-base ", " eval ", "here --logits FILE writes what --against FILE compares with"},
    {" -o --output ", " bench ", "here --json is the other form"},
    {" -pg ", " bench ", "here -p N and -n N are measured at each depth of -d"},
};

static int has_word(const char *words, const char *word, size_t length)
{
    for (const char *at = words; (at = strstr(at, word)); at++)
        if (at != words && at[-1] == ' ' && at[length] == ' ') return 1;
    return 0;
}

static int has_option(const char *name, const char *shorts, const struct option *longs)
{
    if (name[1] != '-') return !name[2] && strchr(shorts, name[1]) != NULL;
    for (; longs->name; longs++)
        if (!strcmp(longs->name, name + 2)) return 1;
    return 0;
}

const char *option_next_word(int argc, char **argv)
{
    int at = optind;
    while (at < argc && (argv[at][0] != '-' || !argv[at][1])) at++;
    return at < argc ? argv[at] : "";
}

const char *option_instead(const char *verb, const char *word, const char *shorts, const struct option *longs)
{
    char name[LONGEST + 1];
    size_t length = strcspn(word, "=");
    if (word[0] != '-' || !word[1] || length > LONGEST || memchr(word, ' ', length)) return NULL;
    memcpy(name, word, length);
    name[length] = 0;
    if (has_option(name, shorts, longs)) return NULL;
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (has_word(foreign[i].names, name, length) && has_word(foreign[i].verbs, verb, strlen(verb))) return foreign[i].instead;
    return NULL;
}

const char *option_one_dash(const char *word, const struct option *longs)
{
    if (word[0] != '-' || word[1] == '-') return NULL;
    for (; longs->name; longs++)
        if (strlen(longs->name) > 1 && !strcmp(longs->name, word + 1)) return longs->name;
    return NULL;
}

void option_near(char *text, size_t cap, const char *word, const struct option *longs)
{
    struct near n;
    char name[LONGEST + 2];
    *text = 0;
    if (strncmp(word, "--", 2)) return;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    near_start(&n, name);
    for (; longs->name; longs++) near_try(&n, longs->name);
    if (n.best) snprintf(text, cap, "; is '--%s' meant?", n.best);
}

void option_twice(char *line, size_t cap, const char *name, const char *counts, const char *does_not)
{
    snprintf(line, cap, "%s was given more than once: '%.100s' counts, '%.100s' does not", name, counts, does_not);
}
