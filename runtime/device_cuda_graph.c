/* Launch lists on a card.
 *
 * A stable list becomes a graph for each bucket of its extent. Its first run in a bucket is a careful one: launch by launch, each
 * waited for, so that a kernel that faults is named. The graph is captured when the list comes a second time, and then serves every
 * step of the bucket. Where a graph cannot be had (an old driver, no memory) lists are launched kernel by kernel, with the same results.
 */
#include "device_cuda.h"
#include <stdlib.h>
#include <string.h>

/* Graphs kept at once; the least recently used goes first. And kernels in a graph that time() makes. */
enum { MOST_GRAPHS = 96, MOST_NODES = 2048 };

struct cuda_graph {
    struct cuda_graph *next;
    const struct q_list *list;     /* borrowed until it is forgotten */
    struct q_extent extent;        /* a bucket */
    int runs;                      /* submits so far */
    int refused;                   /* 1: cannot be captured */
    cu_graph_exec exec;            /* owned; NULL: not captured */
    cu_event *event;               /* owned: [n_events = list->n + 2] of a traced graph: around each launch, and one more; else NULL */
    int n_events;
    double *trace;                 /* where the times of the run on its way are added; NULL: none is */
};

/* --- launching a list ------------------------------------------------------------------------------------------------- */

static void note_launched(struct cuda *c, const struct q_list *list, const struct q_extent *x)
{
    if (!list->n) return;
    c->extent = *x;
    if (!c->n_launched) c->first = &list->launch[0];
    c->last = &list->launch[list->n - 1];
    c->n_launched += list->n;
}

/* Inside a capture a record is a node of the graph. */
static int record(struct cuda *c, cu_event event, int capturing, struct q_err *e)
{
    if (!capturing) return cuda_result(c, c->api.cuEventRecord(event, c->stream), "cuEventRecord", NULL, e);
    cu_result result = c->api.cuEventRecordWithFlags(event, c->stream, CU_EVENT_RECORD_IN_GRAPH);
    return cuda_result(c, result, "cuEventRecordWithFlags", NULL, e);
}

/* One pass. The first kernel begins after all before it has ended; the others may begin early. */
static int enqueue(struct cuda *c, const struct q_list *list, const struct q_extent *x, int pdl, struct q_err *e)
{
    int rc = Q_OK;
    note_launched(c, list, x);
    for (int i = 0; i < list->n && !rc; i++) rc = cuda_launch(c, &list->launch[i], x, pdl && i > 0, e);
    return rc;
}

/* One pass with an event before each launch and two at the end, which tell how long an event itself takes. */
static int enqueue_traced(struct cuda *c, const struct cuda_graph *g, int capturing, struct q_err *e)
{
    int rc = Q_OK;
    note_launched(c, g->list, &g->extent);
    for (int i = 0; i < g->list->n && !rc; i++) {
        rc = record(c, g->event[i], capturing, e);
        if (!rc) rc = cuda_launch(c, &g->list->launch[i], &g->extent, 0, e);
    }
    for (int i = g->list->n; i < g->n_events && !rc; i++) rc = record(c, g->event[i], capturing, e);
    return rc;
}

/* One pass, each launch waited for: a fault is that launch's. */
static int run_carefully(struct cuda *c, const struct q_list *list, const struct q_extent *x, struct q_err *e)
{
    int rc = cuda_finish(c, NULL, e);
    c->extent = *x;
    for (int i = 0; i < list->n && !rc; i++) {
        rc = cuda_launch(c, &list->launch[i], x, 0, e);
        if (!rc) rc = cuda_finish(c, &list->launch[i], e);
    }
    return rc;
}

/* --- capture ---------------------------------------------------------------------------------------------------------- */

/* What a graph is made of: g's list traced, or `passes` passes of it between the device's two events. */
struct capture {
    const struct cuda_graph *g;
    int passes, timed, pdl;
};

static int enqueue_captured(struct cuda *c, const struct capture *k, struct q_err *e)
{
    if (k->g->event) return enqueue_traced(c, k->g, 1, e);
    int rc = k->timed ? record(c, c->begin, 1, e) : Q_OK;
    for (int i = 0; i < k->passes && !rc; i++) {
        const struct q_list *list = k->g->list;
        for (int j = 0; j < list->n && !rc; j++) rc = cuda_launch(c, &list->launch[j], &k->g->extent, k->pdl && i + j > 0, e);
    }
    return !rc && k->timed ? record(c, c->end, 1, e) : rc;
}

static int capture_once(struct cuda *c, const struct capture *k, cu_graph_exec *exec, struct q_err *e)
{
    const struct cuda_api *api = &c->api;
    cu_graph graph = NULL;
    int rc = cuda_result(c, api->cuStreamBeginCapture(c->stream, CU_CAPTURE_THREAD_LOCAL), "cuStreamBeginCapture", NULL, e);
    if (rc) return rc;
    rc = enqueue_captured(c, k, e);
    cu_result ended = api->cuStreamEndCapture(c->stream, &graph);   /* also after a failure, or the stream stays in capture */
    if (!rc) rc = cuda_result(c, ended, "cuStreamEndCapture", NULL, e);
    if (!rc) rc = cuda_result(c, api->cuGraphInstantiate(exec, graph, 0), "cuGraphInstantiateWithFlags", NULL, e);
    if (graph) api->cuGraphDestroy(graph);
    if (!rc && api->cuGraphUpload) api->cuGraphUpload(*exec, c->stream);   /* only a wish: the first launch would do it */
    return rc;
}

/* Drivers before CUDA 12.3 capture no early launches: then without, from now on. 0 when there is a graph. */
static int capture(struct cuda *c, struct capture *k, cu_graph_exec *exec)
{
    *exec = NULL;
    if (!c->capture || ((k->timed || k->g->event) && !c->api.cuEventRecordWithFlags)) return -1;
    k->pdl = c->pdl;
    if (!capture_once(c, k, exec, NULL)) return 0;
    if (!k->pdl || c->fault.code) return -1;
    k->pdl = 0;
    if (capture_once(c, k, exec, NULL)) return -1;
    c->pdl = 0;
    return 0;
}

/* --- the graphs of a device ------------------------------------------------------------------------------------------- */

static void free_graph(struct cuda *c, struct cuda_graph *g)
{
    if (g->exec) c->api.cuGraphExecDestroy(g->exec);
    for (int i = 0; i < g->n_events; i++)
        if (g->event[i]) c->api.cuEventDestroy(g->event[i]);
    free(g->event);
    free(g);
}

static int same_extent(const struct q_extent *a, const struct q_extent *b)
{
    return a->rows == b->rows && a->seqs == b->seqs && a->ctx == b->ctx;
}

static int open_events(struct cuda *c, struct cuda_graph *g, struct q_err *e)
{
    int n = g->list->n + 2, rc = Q_OK;
    g->event = calloc((size_t)n, sizeof *g->event);
    if (!g->event) return q_fail(e, Q_EMEM, "no memory for %d events", n);
    g->n_events = n;
    for (int i = 0; i < n && !rc; i++)
        rc = cuda_result(c, c->api.cuEventCreate(&g->event[i], 0), "cuEventCreate", NULL, e);
    return rc;
}

static int new_graph(struct cuda *c, const struct q_list *list, const struct q_extent *x, int traced, struct cuda_graph **out,
                     struct q_err *e)
{
    struct cuda_graph *g = calloc(1, sizeof *g);
    if (!g) return q_fail(e, Q_EMEM, "no memory for a graph");
    g->list = list;
    g->extent = *x;
    int rc = traced ? open_events(c, g, e) : Q_OK;
    if (rc) {
        free_graph(c, g);
        return rc;
    }
    *out = g;
    return Q_OK;
}

/* Nothing may be on its way while a graph goes. */
static int drop_last(struct cuda *c, struct q_err *e)
{
    int rc = cuda_wait(&c->device, e);
    struct cuda_graph **at = &c->graphs;
    while ((*at)->next) at = &(*at)->next;
    free_graph(c, *at);
    *at = NULL;
    c->n_graphs--;
    return rc;
}

/* The entry of (list, bucket), new or not, moved to the front. */
static int find_graph(struct cuda *c, const struct q_list *list, const struct q_extent *x, int traced, struct cuda_graph **out,
                      struct q_err *e)
{
    struct cuda_graph **at = &c->graphs;
    while (*at && !((*at)->list == list && !(*at)->event == !traced && same_extent(&(*at)->extent, x))) at = &(*at)->next;
    struct cuda_graph *g = *at;
    if (g) {
        *at = g->next;
    } else {
        int rc = c->n_graphs == MOST_GRAPHS ? drop_last(c, e) : Q_OK;
        if (!rc) rc = new_graph(c, list, x, traced, &g, e);
        if (rc) return rc;
        c->n_graphs++;
    }
    g->next = c->graphs;
    c->graphs = g;
    *out = g;
    return Q_OK;
}

void cuda_forget(struct q_device *d, const struct q_list *list)
{
    struct cuda *c = (struct cuda *)d;
    if (!c->graphs) return;
    cuda_wait(d, NULL);
    for (struct cuda_graph **at = &c->graphs; *at;) {
        struct cuda_graph *g = *at;
        if (g->list != list) {
            at = &g->next;
            continue;
        }
        *at = g->next;
        free_graph(c, g);
        c->n_graphs--;
    }
}

void cuda_graphs_close(struct cuda *c)
{
    while (c->graphs) {
        struct cuda_graph *g = c->graphs;
        c->graphs = g->next;
        free_graph(c, g);
    }
    c->n_graphs = 0;
}

/* --- submit and wait -------------------------------------------------------------------------------------------------- */

static int launch_graph(struct cuda *c, struct cuda_graph *g, struct q_err *e)
{
    struct capture k = {.g = g, .passes = 1};
    if (!g->exec && !g->refused) g->refused = capture(c, &k, &g->exec);
    if (c->fault.code) return cuda_enter(c, e);
    if (!g->exec) return g->event ? enqueue_traced(c, g, 0, e) : enqueue(c, g->list, &g->extent, c->pdl, e);
    note_launched(c, g->list, &g->extent);
    return cuda_result(c, c->api.cuGraphLaunch(g->exec, c->stream), "cuGraphLaunch", NULL, e);
}

/* A traced list's events serve one run at a time. */
static int submit_traced(struct cuda *c, const struct q_list *list, const struct q_extent *x, double *trace, struct q_err *e)
{
    struct cuda_graph *g;
    int rc = find_graph(c, list, x, 1, &g, e);
    if (!rc && g->trace) rc = cuda_wait(&c->device, e);
    if (!rc) rc = launch_graph(c, g, e);
    if (!rc) g->trace = trace;
    if (list->stable) return rc;
    if (!rc) rc = cuda_wait(&c->device, e);
    cuda_forget(&c->device, list);
    return rc;
}

int cuda_submit(struct q_device *d, const struct q_list *list, const struct q_extent *extent, double *trace, struct q_err *e)
{
    struct cuda *c = (struct cuda *)d;
    struct q_extent x = q_extent_bucket(extent);
    struct cuda_graph *g;
    int rc = cuda_enter(c, e);
    if (rc || !list->n) return rc;
    if (d->careful) return run_carefully(c, list, &x, e);
    if (trace) return submit_traced(c, list, &x, trace, e);
    if (!list->stable) return enqueue(c, list, &x, c->pdl, e);
    if ((rc = find_graph(c, list, &x, 0, &g, e))) return rc;
    return g->runs++ ? launch_graph(c, g, e) : run_carefully(c, list, &x, e);
}

/* Microseconds between a traced graph's events i and i + 1. */
static int between(struct cuda *c, const struct cuda_graph *g, int i, double *us, struct q_err *e)
{
    float ms = 0;
    int rc = cuda_result(c, c->api.cuEventElapsedTime(&ms, g->event[i], g->event[i + 1]), "cuEventElapsedTime", NULL, e);
    *us = (double)ms * 1e3;
    return rc;
}

/* Adds up the times of a traced run, without what the events took. */
static int collect(struct cuda *c, struct cuda_graph *g, struct q_err *e)
{
    double own = 0, us;
    int rc = between(c, g, g->list->n, &own, e);
    for (int i = 0; i < g->list->n && !rc; i++) {
        rc = between(c, g, i, &us, e);
        if (!rc && us > own) g->trace[i] += us - own;
    }
    g->trace = NULL;
    return rc;
}

int cuda_wait(struct q_device *d, struct q_err *e)
{
    struct cuda *c = (struct cuda *)d;
    int rc = cuda_enter(c, e);
    if (!rc) rc = cuda_finish(c, NULL, e);
    for (struct cuda_graph *g = c->graphs; g && !rc; g = g->next)
        if (g->trace) rc = collect(c, g, e);
    return rc;
}

/* --- timing ----------------------------------------------------------------------------------------------------------- */

/* Milliseconds of one run of a graph whose first and last nodes are the events. */
static int time_graph(struct cuda *c, cu_graph_exec exec, float *ms, struct q_err *e)
{
    int rc = cuda_result(c, c->api.cuGraphLaunch(exec, c->stream), "cuGraphLaunch", NULL, e);
    if (!rc) rc = cuda_finish(c, NULL, e);
    return rc ? rc : cuda_result(c, c->api.cuEventElapsedTime(ms, c->begin, c->end), "cuEventElapsedTime", NULL, e);
}

/* The same without a graph: short kernels then take the time of their launch. */
static int time_direct(struct cuda *c, const struct cuda_graph *g, int passes, float *ms, struct q_err *e)
{
    int rc = record(c, c->begin, 0, e);
    for (int i = 0; i < passes && !rc; i++) rc = enqueue(c, g->list, &g->extent, c->pdl, e);
    if (!rc) rc = record(c, c->end, 0, e);
    if (!rc) rc = cuda_finish(c, NULL, e);
    return rc ? rc : cuda_result(c, c->api.cuEventElapsedTime(ms, c->begin, c->end), "cuEventElapsedTime", NULL, e);
}

/* The untimed pass is the careful one. Passes stand behind one another in one graph, so that no launch is waited for between them. */
int cuda_time(struct q_device *d, const struct q_list *list, const struct q_extent *extent, int times, double *us, struct q_err *e)
{
    struct cuda *c = (struct cuda *)d;
    struct cuda_graph g = {.list = list, .extent = q_extent_bucket(extent)};
    *us = 0;
    int rc = cuda_enter(c, e);
    if (!rc) rc = run_carefully(c, list, &g.extent, e);
    if (rc || !list->n || times < 1) return rc;
    int most = list->n < MOST_NODES ? MOST_NODES / list->n : 1, passes = times < most ? times : most, done = 0;
    struct capture k = {.g = &g, .passes = passes, .timed = 1};
    int direct = capture(c, &k, &g.exec);
    if (c->fault.code) return cuda_enter(c, e);
    for (float ms = 0; done < times && !rc; done += passes) {
        rc = direct ? time_direct(c, &g, passes, &ms, e) : time_graph(c, g.exec, &ms, e);
        *us += (double)ms * 1e3;
    }
    *us /= done;
    if (g.exec) c->api.cuGraphExecDestroy(g.exec);
    return rc;
}
