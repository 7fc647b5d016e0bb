/* POST /slots/ID?action=save|restore|erase, as llama-server has it: what a slot holds goes to a file of --slot-save-path, comes from one, or is
 * forgotten. {"filename": NAME} for the first two.
 *
 * A file has the states at the ends of turns too (runtime/scheduler_session.h), so the prompt that was restored may come again, whole or edited at
 * its end. An order for a slot at work waits for its answer. */
#include "api.h"
#include "orders.h"
#include "request.h"
#include "runtime/files.h"
#include <stdlib.h>
#include <string.h>

static const char *const actions[] = {[ORDER_SAVE] = "save", [ORDER_RESTORE] = "restore", [ORDER_ERASE] = "erase"};

static int read_action(struct http_request *rq, struct order *x, struct api_error *err)
{
    const char *action = http_query(rq, "action");
    for (size_t i = 0; action && i < sizeof actions / sizeof *actions; i++)
        if (!strcmp(action, actions[i])) return x->kind = (enum order_kind)i, 0;
    return api_fail(err, 400, NULL, "action", "expected ?action=save, restore or erase, found '%.40s'", action ? action : "none");
}

static int read_slot(struct http_request *rq, struct order *x, struct api_error *err)
{
    const char *rest = http_rest(rq);
    int n = worker_counts(http_server(rq)->worker).slots;
    size_t digits = strspn(rest, "0123456789");
    x->slot = digits && digits < 6 ? atoi(rest) : n;
    if (digits && !rest[digits] && x->slot < n) return 0;
    return api_fail(err, 404, "slot_not_found", "id", "expected the id of a slot, 0 to %d, found '%.40s'", n - 1, rest);
}

/* A name of the directory alone. */
static int check_name(const char *name, struct api_error *err)
{
    size_t n = strlen(name);
    int bad = !n || n > 200 || *name == '.' || strchr(name, '/');
    for (size_t i = 0; i < n; i++) bad |= (unsigned char)name[i] < 0x20 || name[i] == 0x7F;
    if (!bad) return 0;
    return api_fail(err, 400, NULL, "filename", "field 'filename': expected a name of 1 to 200 bytes without '/' and not beginning with '.'");
}

/* The name is the body's. */
static int read_name(struct http_request *rq, const cJSON *root, const char **name, struct api_error *err)
{
    struct fields f;
    fields_begin(&f, root, err);
    *name = field_string(&f, "filename");
    if (!*name && !fields_bad(&f)) api_fail(err, 400, NULL, "filename", "field 'filename': expected a string, found none");
    if (fields_finish(&f, NULL, 0, http_server(rq)->told)) return -1;
    return check_name(*name, err);
}

static void put_answer(const struct order *x, const char *name, struct text *t)
{
    text_printf(t, "{\"id_slot\":%d", x->slot);
    if (x->kind != ORDER_ERASE) {
        text_put(t, ",\"filename\":");
        text_json_z(t, name);
    }
    double ms = x->seconds * 1e3;
    if (x->kind == ORDER_SAVE)
        text_printf(t, ",\"n_saved\":%d,\"n_written\":%zu,\"timings\":{\"save_ms\":%.3f}}", x->tokens, x->bytes, ms);
    else if (x->kind == ORDER_RESTORE)
        text_printf(t, ",\"n_restored\":%d,\"n_read\":%zu,\"checkpoints\":{\"read\":%d,\"kept\":%d},\"timings\":{\"restore_ms\":%.3f}}", x->tokens,
                    x->bytes, x->parts, x->kept, ms);
    else text_printf(t, ",\"n_erased\":%d}", x->tokens);
}

/* What the file is, and whether it fits, is known before the engine is bothered. */
static int open_file(struct server *sv, struct order *x, const char *path, struct api_error *err)
{
    struct q_err e;
    if (x->kind != ORDER_RESTORE) return 0;
    int rc = session_open(&x->file, path, &e);
    if (!rc) rc = session_check_id(path, session_head(x->file), q_engine_state_id(worker_engine(sv->worker)), &e);
    return rc ? api_fail_err(err, "filename", &e) : 0;
}

/* name NULL: no file. */
static int run(struct http_request *rq, struct order *x, const char *name, char path[Q_PATH], struct text *out, struct api_error *err)
{
    struct server *sv = http_server(rq);
    struct q_err e;
    if (name && path_join(path, &e, sv->o.slot_dir, name, NULL)) return api_fail_err(err, "filename", &e);
    x->path = path;
    if (name && open_file(sv, x, path, err)) return -1;
    http_patience(rq);
    if (worker_order(sv->worker, x))
        return x->err.code == Q_EMISS ? api_fail(err, 503, "shutdown", NULL, "%s", x->err.text) : api_fail_err(err, NULL, &x->err);
    put_answer(x, name, out);
    return 0;
}

static int with_file(struct http_request *rq, struct order *x, char path[Q_PATH], struct text *out, struct api_error *err)
{
    size_t n;
    cJSON *root;
    const char *name, *body = http_body(rq, &n);
    if (!http_server(rq)->o.slot_dir)
        return api_fail(err, 501, "not_supported", NULL, "this server keeps no files of slots: it was started without --slot-save-path DIR");
    if (body_parse(body, n, &root, err)) return -1;
    int rc = read_name(rq, root, &name, err);
    if (!rc) rc = run(rq, x, name, path, out, err);
    cJSON_Delete(root);
    return rc;
}

void api_slot_action(struct http_request *rq)
{
    struct order x = {.slot = -1};
    struct api_error err = {0};
    struct text out = {0};
    char path[Q_PATH];
    int rc = read_slot(rq, &x, &err);
    if (!rc) rc = read_action(rq, &x, &err);
    if (!rc) rc = x.kind == ORDER_ERASE ? run(rq, &x, NULL, path, &out, &err) : with_file(rq, &x, path, &out, &err);
    session_close(x.file);
    if (rc) {
        text_free(&out);
        http_reply_error(rq, &err);
        return;
    }
    if (x.kept < x.parts)
        http_note(rq, "slot %d: restore, %d tokens, only %d of %d checkpoints kept: --cache-device has no room for more", x.slot, x.tokens, x.kept,
                  x.parts);
    else http_note(rq, "slot %d: %s, %d tokens", x.slot, actions[x.kind], x.tokens);
    http_reply_json(rq, 200, &out);
}
