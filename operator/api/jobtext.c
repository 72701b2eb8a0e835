/* jobtext.c - pack the cached part of a job into one block of memory, and decode it again. */
#include "operator/api/jobtext.h"
#include "common/memory.h"
#include "operator/api/workload.h"

#include <stdio.h>
#include <string.h>

/* The members of the object and of its metadata that are stored. The rest (managedFields) is often larger,
 * and unused here. */
static const char *const MEMBERS[] = {"metadata", "spec", "status", NULL};
static const char *const META_MEMBERS[] = {"namespace",         "name",       "uid",
                                           "resourceVersion",   "generation", "creationTimestamp",
                                           "deletionTimestamp", NULL};

/* A new object that refers to these members of `object`. */
static cJSON *view_of(const cJSON *object, const char *const *keys)
{
    cJSON *view = cJSON_CreateObject();

    for (; *keys; keys++) {
        const cJSON *member = cJSON_GetObjectItemCaseSensitive(object, *keys);
        if (member && !cJSON_AddItemReferenceToObject(view, *keys, (cJSON *)(uintptr_t)member))
            memory_exhausted();
    }
    return view;
}

/* The length as the API server encodes it: Go escapes characters that are special in HTML. */
static size_t served_bytes(const struct buf *text)
{
    const char *p = text->data;
    size_t bytes = text->len;

    for (size_t i = 0; i < text->len; i++) {
        if (p[i] == '<' || p[i] == '>' || p[i] == '&')
            bytes += 5;
        else if (text->len - i >= 3 && memcmp(p + i, "\xe2\x80", 2) == 0 &&
                 ((unsigned char)p[i + 2] & 0xfe) == 0xa8)
            bytes += 3;
    }
    return bytes;
}

static bool fits(const cJSON *node, size_t max)
{
    cleanup_buf struct buf text = BUF_INIT(max);
    struct err full;

    return json_write(node, &text, &full) == 0 && served_bytes(&text) <= max;
}

/* Drop the spec except who manages the job, and runPolicy, which decides what happens to it in the end. */
static void drop_spec(cJSON *view, const cJSON *spec)
{
    cJSON *rest = view_of(spec, (const char *[]){"managedBy", "runPolicy", NULL});
    const cJSON *policy = json_child(spec, "runPolicy");

    if (policy && !fits(policy, JOBTEXT_POLICY_BYTES))
        cJSON_ReplaceItemInObjectCaseSensitive(rest, "runPolicy",
                                               view_of(policy, (const char *[]){"managedBy", NULL}));
    cJSON_ReplaceItemInObjectCaseSensitive(view, "spec", rest);
}

/* Of a queued job also store what Kueue reads of it. */
static void add_queue(cJSON *view, const cJSON *meta)
{
    static const char *const LABELS[] = {LABEL_QUEUE, LABEL_QUEUE_PRIORITY, LABEL_QUEUE_MAX_TIME,
                                         QUEUE_PREBUILT, NULL};
    static const struct {
        const char *key;
        size_t max;
    } ANNOTATIONS[] = {{ANNOTATION_QUEUE_GATE, WORKLOAD_GATES_BYTES}, {QUEUE_PREBUILT, DECODE_NAME_BYTES}};
    char too_long[WORKLOAD_GATES_BYTES + 2];
    const cJSON *labels = cJSON_GetObjectItemCaseSensitive(meta, "labels");
    const cJSON *annotations = cJSON_GetObjectItemCaseSensitive(meta, "annotations");

    if (!json_str(labels, LABEL_QUEUE))
        return;
    cJSON_AddItemToObject(view, "labels", view_of(labels, LABELS));
    cJSON *few = cJSON_AddObjectToObject(view, "annotations");
    for (size_t i = 0; i < ARRAY_LEN(ANNOTATIONS); i++) {
        const char *text = json_str(annotations, ANNOTATIONS[i].key);
        bool fits = text && strlen(text) <= ANNOTATIONS[i].max;
        if (text && !fits) /* the job is invalid by that */
            snprintf(too_long, sizeof(too_long), "%*s", (int)ANNOTATIONS[i].max + 1, "");
        if (text)
            cJSON_AddStringToObject(few, ANNOTATIONS[i].key, fits ? text : too_long);
    }
}

/* Write the JSON to *text, with spec and status within their limits. */
static int write_text(const cJSON *object, struct buf *text, bool *ret_too_large, struct err *err)
{
    const cJSON *spec = cJSON_GetObjectItemCaseSensitive(object, "spec");
    const cJSON *status = cJSON_GetObjectItemCaseSensitive(object, "status");
    cleanup_json cJSON *view = view_of(object, MEMBERS);

    const cJSON *meta = cJSON_GetObjectItemCaseSensitive(object, "metadata");
    cJSON *names = view_of(meta, META_MEMBERS);
    add_queue(names, meta);
    cJSON_ReplaceItemInObjectCaseSensitive(view, "metadata", names);
    if (json_write(view, text, err) < 0)
        return -1;
    /* Measure the parts only if the whole text exceeds the limit. */
    bool large = served_bytes(text) > JOBTEXT_SPEC_BYTES;
    if (large && status && !fits(status, JOBTEXT_STATUS_BYTES))
        return err_set(err, ERR_INVALID, "status: over %d bytes of JSON", JOBTEXT_STATUS_BYTES);
    *ret_too_large = large && spec && !fits(spec, JOBTEXT_SPEC_BYTES);
    if (!*ret_too_large)
        return 0;
    drop_spec(view, spec);
    buf_clear(text);
    return json_write(view, text, err);
}

static struct jobtext *text_of(const cJSON *object, const struct err *unreadable, struct err *err)
{
    const cJSON *meta = json_child(object, "metadata");
    cleanup_buf struct buf text = BUF_INIT(SIZE_MAX / 4);
    struct object_names names;
    struct jobtext t = {.unreadable = unreadable ? unreadable->msg : "",
                        .generation = json_i64(meta, "generation", 0),
                        .deleting = json_str(meta, "deletionTimestamp") != NULL,
                        .queued =
                            json_str(cJSON_GetObjectItemCaseSensitive(meta, "labels"), LABEL_QUEUE) != NULL,
                        .phase = job_phase_of(json_child(object, "status"))};

    if (decode_names(meta, TRAINJOB_KIND, &names, err) < 0)
        return NULL;
    if (!names.version[0]) {
        err_set(err, ERR_INVALID, TRAINJOB_KIND ": metadata without resourceVersion");
        return NULL;
    }
    if (write_text(object, &text, &t.too_large, err) < 0)
        return NULL;
    t.ns = names.ns;
    t.name = names.name;
    t.uid = names.uid;
    t.resource_version = names.version;
    t.json = buf_str(&text);
    t.json_len = text.len;
    const char **const fields[] = {&t.ns, &t.name, &t.uid, &t.resource_version, &t.unreadable, &t.json};
    return decode_pack(&t, sizeof(t), fields, ARRAY_LEN(fields));
}

/* A managedBy that is too long becomes "?", so that the job still counts as another controller's. */
static void keep_manager(const cJSON *from, cJSON *to)
{
    const char *who = json_str(from, "managedBy");

    if (who)
        cJSON_AddStringToObject(to, "managedBy", strlen(who) <= DECODE_NAME_BYTES ? who : "?");
}

static void keep_managers(const cJSON *names, cJSON *few)
{
    const cJSON *spec = json_child(names, "spec");
    cJSON *to = cJSON_AddObjectToObject(few, "spec");

    keep_manager(spec, to);
    keep_manager(json_child(spec, "runPolicy"), cJSON_AddObjectToObject(to, "runPolicy"));
}

/* Of an unreadable job store only the names, managedBy and deletionTimestamp, also if other parts could be
 * read. */
static cJSON *few_of(const cJSON *names)
{
    const cJSON *meta = json_child(names, "metadata");
    const char *reason = json_str(json_child(names, "status"), "reason");
    cJSON *few = cJSON_CreateObject();

    if (meta && !cJSON_AddItemReferenceToObject(few, "metadata", (cJSON *)(uintptr_t)meta))
        memory_exhausted();
    keep_managers(names, few);
    if (reason && strlen(reason) <= DECODE_REASON_BYTES)
        cJSON_AddStringToObject(cJSON_AddObjectToObject(few, "status"), "reason", reason);
    return few;
}

struct jobtext *jobtext_new(const cJSON *object, const struct err *unreadable, struct err *err)
{
    cleanup_json cJSON *few = unreadable ? few_of(object) : NULL;

    return text_of(few ? few : object, unreadable, err);
}

struct trainjob *jobtext_decode(const struct jobtext *t, struct err *err)
{
    cJSON *tree = json_parse(t->json, t->json_len, err);

    struct trainjob *job = tree ? trainjob_decode(tree, err) : NULL;
    if (job && t->unreadable[0])
        job->unreadable = arena_strdup(&job->arena, t->unreadable);
    if (job && t->too_large)
        job->spec_error =
            arena_printf(&job->arena, "spec: expected at most %d bytes of JSON", JOBTEXT_SPEC_BYTES);
    return job;
}
