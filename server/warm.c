#include "warm.h"

enum { PROMPT = 64, TOKENS = 3 };

static int draw(struct q_engine *en, struct q_seq *s, struct q_err *e)
{
    struct q_sampling sampling = {.p = q_sampling_default()};
    struct q_result r;
    int ids[PROMPT], n = PROMPT < q_engine_ctx(en) - TOKENS ? PROMPT : 1;
    for (int i = 0; i < n; i++) ids[i] = i;
    int rc = q_prefill(en, s, ids, n, 0, Q_WANT_ID, &sampling, &r, e);
    for (int i = 0; i < TOKENS && !rc && q_seq_length(s) < q_engine_ctx(en); i++) {
        int id = r.id[0];
        rc = q_prefill(en, s, &id, 1, 0, Q_WANT_ID, &sampling, &r, e);
    }
    return rc;
}

int warm_up(struct q_engine *en, struct q_err *e)
{
    struct q_seq *s;
    int rc = q_seq_open(en, &s, e);
    if (rc) return rc;
    rc = draw(en, s, e);
    q_seq_close(s);
    return rc;
}
