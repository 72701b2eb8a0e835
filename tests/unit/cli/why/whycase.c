/* whycase.c - read a case of `kubectl ptj why` over its base, and write a screen as wants have it. */
#include "whycase.h"

#include "common/fsutil.h"
#include "operator/api/pod.h"
#include "operator/plan/exitcode.h"
#include "operator/plan/rootcause.h"
#include "yamldoc.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 1 << 20 };

static const char WANT[] = "\nwant: |\n",
                  OPERATOR[] = "\nOperator: ", DO[] = "\nDo:       ", LAST_LINES[] = "\nLast lines of ";

static void path_of(const struct whycase_folder *f, const char *name, char path[512])
{
    snprintf(path, 512, "%s/%s.yaml", f->path, name);
}

static cJSON *read_file(const struct whycase_folder *f, const char *name, struct err *err)
{
    char path[512];

    path_of(f, name, path);
    return yamldoc_read(path, err);
}

int whycase_open(const char *path, const char *plan, struct whycase_folder *ret, struct err *err)
{
    char said[512];

    *ret = (struct whycase_folder){.path = path};
    path_of(ret, "_sentences", said);
    return sentences_read(said, &ret->said, err) < 0 || sentences_read(plan, &ret->planned, err) < 0 ? -1 : 0;
}

void whycase_close(struct whycase_folder *f)
{
    sentences_free(&f->said);
    sentences_free(&f->planned);
}

/* ---- a case over its base */

static void put_index(cJSON *node, int index)
{
    char text[128];
    cJSON *child;

    cJSON_ArrayForEach(child, node) put_index(child, index);
    const char *at = cJSON_IsString(node) ? strchr(node->valuestring, '$') : NULL;
    if (!at)
        return;
    snprintf(text, sizeof(text), "%.*s%d%s", (int)(at - node->valuestring), node->valuestring, index, at + 1);
    (void)cJSON_SetValuestring(node, text);
}

static cJSON *over(const cJSON *base, const cJSON *patch)
{
    cJSON *object = cJSON_Duplicate(base, true);

    if (patch)
        yamldoc_merge(object, patch);
    return object;
}

static cJSON *make_pod(const cJSON *base, cJSON *patch, int index)
{
    cJSON *container = cJSON_DetachItemFromObject(patch, "container");
    cJSON *pod = over(cJSON_GetObjectItem(base, "pod"), NULL);

    put_index(pod, index);
    yamldoc_merge(pod, patch);
    if (container) {
        cJSON *states = cJSON_AddArrayToObject(cJSON_GetObjectItem(pod, "status"), "containerStatuses");
        cJSON_AddItemToArray(states, over(cJSON_GetObjectItem(base, "container"), container));
        cJSON_Delete(container);
    }
    return pod;
}

/* The conditions by their type become a list; a failure alone is all there were. */
static int finish_status(const struct whycase_folder *f, cJSON *status, struct err *err)
{
    cleanup_arena struct arena a = {0};
    cJSON *types = cJSON_DetachItemFromObject(status, "conditions"), *c, *next;
    const cJSON *last = cJSON_GetObjectItem(status, "lastFailure");

    cJSON *list = cJSON_AddArrayToObject(status, "conditions");
    for (c = types ? types->child : NULL; c; c = next) {
        const char *said = sentences_text(&f->planned, cJSON_GetObjectItem(c, "message"), &a, err);
        next = c->next;
        if (!said) {
            cJSON_Delete(types);
            return -1;
        }
        cJSON_ReplaceItemInObject(c, "message", cJSON_CreateString(said));
        cJSON_AddStringToObject(c, "type", c->string);
        cJSON_AddItemToArray(list, cJSON_DetachItemViaPointer(types, c));
    }
    cJSON_Delete(types);
    if (last && !cJSON_HasObjectItem(status, "failures"))
        cJSON_AddItemToArray(cJSON_AddArrayToObject(status, "failures"), cJSON_Duplicate(last, true));
    return 0;
}

static int expand(const struct whycase_folder *f, cJSON *doc, struct err *err)
{
    cleanup_json cJSON *base = read_file(f, "_base", err), *job = NULL, *pods = NULL, *events = NULL;
    cJSON *patch;
    int i = 0;

    if (!base)
        return -1;
    job = cJSON_DetachItemFromObject(doc, "job");
    cJSON *whole = over(cJSON_GetObjectItem(base, "job"), job);
    cJSON_AddItemToObject(doc, "job", whole);
    if (!cJSON_HasObjectItem(doc, "now"))
        cJSON_AddItemToObject(doc, "now", cJSON_Duplicate(cJSON_GetObjectItem(base, "now"), true));
    if ((pods = cJSON_DetachItemFromObject(doc, "pods"))) {
        cJSON *list = cJSON_AddArrayToObject(doc, "pods");
        cJSON_ArrayForEach(patch, pods) cJSON_AddItemToArray(list, make_pod(base, patch, i++));
    }
    if ((events = cJSON_DetachItemFromObject(doc, "events"))) {
        cJSON *list = cJSON_AddArrayToObject(doc, "events");
        cJSON_ArrayForEach(patch, events)
            cJSON_AddItemToArray(list, over(cJSON_GetObjectItem(base, "event"), patch));
    }
    cJSON *status = cJSON_GetObjectItem(whole, "status");
    return status ? finish_status(f, status, err) : 0;
}

/* ---- a recorded run */

/* What the operator writes into the status when this pod has ended. */
static void add_failure(cJSON *doc, const struct verdict *v)
{
    cleanup_arena struct arena a = {0};
    cJSON *status = cJSON_GetObjectItem(cJSON_GetObjectItem(doc, "job"), "status"), *f = cJSON_CreateObject();

    cJSON_AddStringToObject(f, "pod", "bert-node-0");
    cJSON_AddStringToObject(f, "uid", "p-0");
    cJSON_AddStringToObject(f, "node", "gpu-1");
    cJSON_AddStringToObject(f, "reason", v->reason);
    cJSON_AddStringToObject(f, "message", rootcause_text(v->message, &a));
    cJSON_AddStringToObject(f, "time", "2026-01-01T09:57:00Z");
    cJSON_AddNumberToObject(f, "attempt", 0);
    cJSON_AddNumberToObject(f, "exitCode", v->exit_code);
    if (v->rank >= 0)
        cJSON_AddNumberToObject(f, "rank", v->rank);
    if (v->signal)
        cJSON_AddNumberToObject(f, "signal", v->signal);
    cJSON_AddStringToObject(status, "reason", v->reason);
    cJSON_AddItemToObject(status, "lastFailure", f);
}

/* What the kubelet takes for a message of a container that left none: the last 80 lines of its log, 2,048 bytes at most. */
static cJSON *end_of(const char *log)
{
    const char *at = log + strlen(log);

    for (int lines = 0; at > log && lines <= 80 && strlen(at) < 2048; at--)
        lines += at[-1] == '\n';
    return cJSON_CreateString(at);
}

static int add_end(cJSON *doc, cJSON *run, struct err *err)
{
    static const char *const TERMINATED[] = {"state", "terminated", NULL}, *const STATES[] = {"status", NULL};
    const cJSON *object = cJSON_GetArrayItem(cJSON_GetObjectItem(doc, "pods"), 0);
    const cJSON *states = cJSON_GetObjectItem(json_find(object, STATES), "containerStatuses");
    cJSON *end = (cJSON *)(uintptr_t)json_find(cJSON_GetArrayItem(states, 0), TERMINATED);
    const struct run_policy policy = {0};

    cJSON_AddItemToObject(end, "exitCode", cJSON_DetachItemFromObject(run, "exitCode"));
    cJSON_AddItemToObject(end, "message",
                          cJSON_HasObjectItem(run, "message") ? cJSON_DetachItemFromObject(run, "message")
                                                              : end_of(json_str(run, "log")));
    struct pod *pod = pod_decode(object, NULL, err);
    if (!pod)
        return -1;
    const struct verdict v = exitcode_verdict(pod, &policy);
    add_failure(doc, &v);
    free(pod);
    cJSON_AddItemToObject(doc, "cause", cJSON_DetachItemFromObject(run, "cause"));
    cJSON_AddItemToObject(doc, "log", cJSON_DetachItemFromObject(run, "log"));
    return 0;
}

cJSON *whycase_read(const struct whycase_folder *f, const char *name, struct err *err)
{
    cJSON *doc = read_file(f, name, err), *run = NULL;

    if (doc && cJSON_HasObjectItem(doc, "exitCode")) {
        run = doc;
        doc = read_file(f, "_recorded", err);
    }
    if (doc && (expand(f, doc, err) < 0 || (run && add_end(doc, run, err) < 0))) {
        cJSON_Delete(doc);
        doc = NULL;
    }
    cJSON_Delete(run);
    return doc;
}

/* ---- wants */

/* A sentence of the table as its key and arguments, any other text as it is. */
static const char *fold_text(struct whycase_folder *f, const char *text, struct arena *a)
{
    cleanup_json cJSON *node = sentences_node(&f->said, text);

    sentences_note(&f->said, node);
    return cJSON_IsArray(node) ? json_print(node, a) : text;
}

/* Lines from `from` to `to` as one text, without what indents them. */
static char *unwrapped(const char *from, const char *to, struct arena *a)
{
    struct sv rest = {from, (size_t)(to - from)}, line;
    char *out = arena_strdup(a, "");

    while (rest.len && sv_next(&rest, '\n', &line)) {
        line = sv_trim(line);
        out = arena_printf(a, "%s%s%.*s", out, *out && line.len ? " " : "", (int)line.len, line.p);
    }
    return out;
}

/* A line for each sentence of the paragraph. */
static const char *fold_paragraph(struct whycase_folder *f, const char *title, const char *text,
                                  struct arena *a)
{
    const char *out = "";

    while (*text) {
        const char *end = text;
        while (*end && !(end[0] == '.' && end[1] == ' ' && end[2] >= 'A' && end[2] <= 'Z'))
            end++;
        const size_t len = (size_t)(end - text) + (*end == '.');
        out = arena_printf(a, "%s%s%s\n", out, *out ? "  " : title,
                           fold_text(f, arena_strndup(a, text, len), a));
        text = end + (*end == '.' ? 2 : 0);
    }
    return out;
}

/* "Failed: what happened" when it stands in one line, and the heading of the log. */
static const char *fold_head(struct whycase_folder *f, const char *screen, size_t len, struct arena *a)
{
    const char *head = arena_strndup(a, screen, len), *end = strchr(head, '\n'), *colon = strstr(head, ": ");
    const char *log = strstr(head, LAST_LINES);

    if (colon && end && colon < end)
        head = arena_printf(a, "%.*s%s%s", (int)(colon + 2 - head), head,
                            fold_text(f, arena_strndup(a, colon + 2, (size_t)(end - colon - 2)), a), end);
    if (!log)
        return head;
    log = strstr(head, LAST_LINES);
    end = strchr(log + 1, '\n');
    return arena_printf(a, "%.*s%s%s", (int)(log + 1 - head), head,
                        fold_text(f, arena_strndup(a, log + 1, (size_t)(end - log - 1)), a), end);
}

const char *whycase_fold(struct whycase_folder *f, const char *screen, struct arena *a)
{
    const char *next = strstr(screen, OPERATOR), *what = strstr(screen, DO), *out;

    if (!what)
        return screen;
    out = arena_printf(a, "%s\n", fold_head(f, screen, (size_t)((next ? next : what) - screen), a));
    if (next)
        out =
            arena_printf(a, "%s%s", out,
                         fold_paragraph(f, "Operator: ", unwrapped(next + sizeof(OPERATOR) - 1, what, a), a));
    return arena_printf(
        a, "%s%s", out,
        fold_paragraph(f, "Do: ", unwrapped(what + sizeof(DO) - 1, what + strlen(what), a), a));
}

const char *whycase_want(const struct whycase_folder *f, const char *name, struct arena *a, struct err *err)
{
    cleanup_json cJSON *doc = read_file(f, name, err);

    if (!doc)
        return NULL;
    const char *want = json_str(doc, "want");
    return arena_strdup(a, want ? want : "");
}

int whycase_write_want(const struct whycase_folder *f, const char *name, const char *want, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(TEXT_MAX), out = BUF_INIT(TEXT_MAX);
    struct sv rest = sv_from(want), line;
    char path[512];

    path_of(f, name, path);
    if (fs_read(path, &text, err) < 0)
        return -1;
    const char *old = strstr(buf_str(&text), WANT);
    if (buf_append(&out, buf_str(&text), old ? (size_t)(old - buf_str(&text)) : text.len - 1, err) < 0 ||
        buf_puts(&out, WANT, err) < 0)
        return -1;
    while (rest.len && sv_next(&rest, '\n', &line))
        if (buf_printf(&out, err, "%s%.*s\n", line.len ? "  " : "", (int)line.len, line.p) < 0)
            return -1;
    return fs_write_atomic(path, buf_str(&out), out.len, err);
}
