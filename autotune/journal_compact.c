#define _GNU_SOURCE
#include "journal_impl.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SESSIONS = 12, PROBLEMS = 1 << 14, STARTS = 64 };

/* Of which session a problem's evidence is kept: the newest that finished it, else the newest that met it. */
struct problem {
    char hash[65];
    int session, finished;
};

/* How much is kept, where all of it would be more than a session holds. */
enum level { EVIDENCE, WINNERS, BAD, NOTHING };

struct compaction {
    const char *card;
    char boot[64];
    struct problem *p;                            /* owned: [PROBLEMS] */
    int n;
    char (*name)[JOURNAL_NUMBER + 1];             /* owned: of the sessions that were read */
    char *closed;                                 /* owned: 1 where the tune wrote its records, or the gate refused them */
    int n_sessions, session;                      /* session: the one that is read */
    int same_boot;
    enum level level;
    FILE *out;
    size_t bytes;
    cJSON *start[STARTS];                         /* owned: without an end yet */
    int n_starts;
};

static struct problem *problem_of(struct compaction *c, const cJSON *o)
{
    struct store_key k;
    char hash[65], size[40];
    if (journal_key(o, c->card, &k)) return NULL;
    snprintf(size, sizeof size, "%d,%d", k.rows, k.ctx);
    sha_texts(hash, (const char *const[]){ k.op, k.shape, size, k.profile, k.generator }, 5);
    for (int i = 0; i < c->n; i++)
        if (!strcmp(c->p[i].hash, hash)) return &c->p[i];
    if (c->n == PROBLEMS) return NULL;
    struct problem *p = &c->p[c->n++];
    *p = (struct problem){ .session = -1 };
    strcpy(p->hash, hash);
    return p;
}

static void put(struct compaction *c, cJSON *o)
{
    char *line = journal_print(o);
    c->bytes += line ? strlen(line) : JOURNAL_MOST;
    if (line) fputs(line, c->out);
    free(line);
}

/* --- starts that nothing follows --------------------------------------------------------------------------------------- */

static void forget_starts(struct compaction *c)
{
    for (int i = 0; i < c->n_starts; i++) cJSON_Delete(c->start[i]);
    c->n_starts = 0;
}

static void forget_start(struct compaction *c, const cJSON *o)
{
    const char *object = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "object"));
    for (int i = 0; object && i < c->n_starts; i++) {
        if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(c->start[i], "object")), object)) continue;
        cJSON_Delete(c->start[i]);
        c->start[i--] = c->start[--c->n_starts];
    }
}

static void note_start(struct compaction *c, const cJSON *o)
{
    forget_start(c, o);
    if (c->n_starts == STARTS || !cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "object"))) return;
    if ((c->start[c->n_starts] = cJSON_Duplicate(o, 1))) c->n_starts++;
}

static void replace_text(cJSON *o, const char *name, const char *text)
{
    cJSON_DeleteItemFromObjectCaseSensitive(o, name);
    cJSON_AddStringToObject(o, name, text);
}

/* At a session's end; as book_open judges them. */
static void put_starts(struct compaction *c)
{
    for (int i = 0; i < c->n_starts; i++) {
        cJSON *o = c->start[i];
        cJSON_DeleteItemFromObjectCaseSensitive(o, "what");
        replace_text(o, "ev", c->same_boot ? "suspect" : "bad");
        replace_text(o, "why", c->same_boot ? "the tune ended while it ran" : "the machine went down while it ran");
        if (!c->same_boot) replace_text(o, "kind", "died");
        put(c, o);
    }
    forget_starts(c);
}

/* --- two passes -------------------------------------------------------------------------------------------------------- */

static int choose(void *arg, const struct journal_event *ev)
{
    struct compaction *c = arg;
    if (!strcmp(ev->ev, "open")) strcpy(c->name[c->session = c->n_sessions++], ev->session);
    const cJSON *left = cJSON_GetObjectItemCaseSensitive(ev->o, "left");
    if (!strcmp(ev->ev, "close") && cJSON_IsNumber(left) && left->valuedouble == 0) c->closed[c->session] = 1;
    if (!strcmp(ev->ev, "gate") && cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(ev->o, "passed"))) c->closed[c->session] = 1;
    struct problem *p = problem_of(c, ev->o);
    if (!p) return 0;
    int won = !strcmp(ev->ev, "won");
    if (won || !p->finished) p->session = c->session;
    p->finished |= won;
    return 0;
}

static int is_kept(struct compaction *c, const struct journal_event *ev)
{
    static const struct { const char *ev; enum level until; } kept[] = {
        { "bad", BAD }, { "suspect", BAD }, { "won", WINNERS },
        { "problem", EVIDENCE }, { "checked", EVIDENCE }, { "time", EVIDENCE }, { "clocks", EVIDENCE },
    };
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        if (strcmp(ev->ev, kept[i].ev) || c->level > kept[i].until) continue;
        const struct problem *p = problem_of(c, ev->o);
        return p && (kept[i].until == BAD || p->session == c->session);
    }
    return 0;
}

static void put_kept(struct compaction *c, const struct journal_event *ev)
{
    cJSON *o = cJSON_Duplicate(ev->o, 1);
    if (!strcmp(ev->ev, "won") && c->closed[c->session] && !cJSON_HasObjectItem(o, "recorded")) cJSON_AddTrueToObject(o, "recorded");
    put(c, o);
    cJSON_Delete(o);
}

static void begin(struct compaction *c, const cJSON *o)
{
    char boot[64];
    put_starts(c);
    c->session++;
    c->same_boot = journal_text(o, "boot", boot, sizeof boot) || !strcmp(boot, c->boot);
}

static int keep(void *arg, const struct journal_event *ev)
{
    struct compaction *c = arg;
    if (!strcmp(ev->ev, "open")) begin(c, ev->o);
    else if (!strcmp(ev->ev, "close")) forget_starts(c);
    else if (!strcmp(ev->ev, "start")) note_start(c, ev->o);
    else forget_start(c, ev->o);
    if (is_kept(c, ev)) put_kept(c, ev);
    return c->bytes > JOURNAL_FULL;
}

static void put_open(struct compaction *c)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "ev", "open");
    cJSON_AddStringToObject(o, "boot", c->boot);
    cJSON_AddStringToObject(o, "card", c->card);
    cJSON_AddTrueToObject(o, "compacted");
    cJSON_AddNumberToObject(o, "format", JOURNAL_FORMAT);
    put(c, o);
    cJSON_Delete(o);
}

/* --- files ------------------------------------------------------------------------------------------------------------- */

/* The merged session takes the newest's name: the rename is the moment at which all of it happens. What is left over then is older, says
 * nothing new, and is merged the next time. Files that this version does not read stay. */
static int replace(const struct compaction *c, const char *dir, const char *text, size_t n, struct q_err *e)
{
    char path[Q_PATH];
    int last = c->n_sessions - 1, rc = journal_path(path, dir, c->name[last], e);
    if (!rc) rc = file_write(path, text, n, e);
    for (int i = 0; i < last && !rc; i++)
        if (!journal_path(path, dir, c->name[i], NULL)) unlink(path);
    return rc;
}

static int merge_at(struct compaction *c, const char *dir, struct q_err *e)
{
    struct journal_foreign foreign;
    char *text = NULL;
    size_t n = 0;
    if (!(c->out = open_memstream(&text, &n))) return q_fail(e, Q_EMEM, "no memory to compact a journal");
    c->bytes = 0;
    c->session = -1;
    put_open(c);
    int rc = journal_each(dir, c->card, keep, c, &foreign, e);
    put_starts(c);
    if (fclose(c->out) && !rc) rc = q_fail(e, Q_EMEM, "no memory to compact a journal");
    if (!rc && c->bytes <= JOURNAL_FULL) rc = replace(c, dir, text, n, e);
    free(text);
    return rc;
}

static int merge(struct compaction *c, int sessions, const char *dir, struct q_err *e)
{
    struct journal_foreign foreign;
    c->p = calloc(PROBLEMS, sizeof *c->p);
    c->closed = calloc((size_t)sessions, 1);
    c->name = calloc((size_t)sessions, sizeof *c->name);
    if (!c->p || !c->closed || !c->name) return q_fail(e, Q_EMEM, "no memory to compact a journal");
    int rc = journal_each(dir, c->card, choose, c, &foreign, e);
    if (rc || c->n_sessions <= SESSIONS) return rc;
    do rc = merge_at(c, dir, e);
    while (!rc && c->bytes > JOURNAL_FULL && ++c->level <= NOTHING);
    return rc;
}

int journal_compact(const char *dir, const char *card, struct q_err *e)
{
    struct journal_names l;
    struct compaction c = { .card = card };
    int rc = journal_names(&l, dir, e);
    journal_boot(c.boot);
    if (!rc && l.n > SESSIONS) rc = merge(&c, l.n, dir, e);
    free(c.p);
    free(c.closed);
    free(c.name);
    free(l.v);
    return rc;
}
