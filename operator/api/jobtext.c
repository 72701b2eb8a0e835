/* jobtext.c - what is kept of the object, packed into one block; and back. */
#include "operator/api/jobtext.h"
#include "common/memory.h"

#include <string.h>

/* Written by everyone who ever touched the object, read by none of us; often the larger part of it. */
static bool is_ballast(const cJSON *member)
{
    static const char *const NAMES[] = {"managedFields", "annotations", "labels", "finalizers",
                                        "ownerReferences"};

    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        if (strcmp(member->string, NAMES[i]) == 0)
            return true;
    return false;
}

/* An object with the same members, which stay where they are. */
static cJSON *view_of(const cJSON *object, bool without_ballast)
{
    cJSON *view = cJSON_CreateObject();
    const cJSON *member;

    cJSON_ArrayForEach(member, object)
    {
        if (without_ballast && is_ballast(member))
            continue;
        if (!cJSON_AddItemReferenceToObject(view, member->string, (cJSON *)(uintptr_t)member))
            memory_exhausted();
    }
    return view;
}

static char *add_text(char **to, const char *s, size_t len)
{
    char *at = memcpy(*to, s, len);

    at[len] = '\0';
    *to += len + 1;
    return at;
}

static struct jobtext *pack(const struct jobtext *from)
{
    const char *const texts[] = {from->ns, from->name, from->uid, from->resource_version};
    size_t bytes = sizeof(*from) + from->json_len + 1;
    const char *copies[ARRAY_LEN(texts)];

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        bytes += strlen(texts[i]) + 1;
    struct jobtext *t = memory_must(malloc(bytes));
    char *to = (char *)(t + 1);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        copies[i] = add_text(&to, texts[i], strlen(texts[i]));
    *t = *from;
    t->ns = copies[0];
    t->name = copies[1];
    t->uid = copies[2];
    t->resource_version = copies[3];
    t->json = add_text(&to, from->json, from->json_len);
    return t;
}

static bool fits(const cJSON *node)
{
    cleanup_buf struct buf text = BUF_INIT(JOBTEXT_SPEC_BYTES);
    struct err full;

    return json_write(node, &text, &full) == 0;
}

/* What a spec that is not kept still says: what becomes of the job in the end. */
static void drop_spec(cJSON *view, const cJSON *spec)
{
    const cJSON *policy = json_find(spec, (const char *[]){"runPolicy", NULL});
    cJSON *rest = cJSON_CreateObject();

    if (policy && fits(policy) &&
        !cJSON_AddItemReferenceToObject(rest, "runPolicy", (cJSON *)(uintptr_t)policy))
        memory_exhausted();
    cJSON_ReplaceItemInObjectCaseSensitive(view, "spec", rest);
}

struct jobtext *jobtext_new(const cJSON *object, struct err *err)
{
    const cJSON *meta = json_find(object, (const char *[]){"metadata", NULL});
    const cJSON *spec = json_find(object, (const char *[]){"spec", NULL});
    struct jobtext t = {.ns = json_str(meta, "namespace"),
                        .name = json_str(meta, "name"),
                        .uid = json_str(meta, "uid"),
                        .resource_version = json_str(meta, "resourceVersion"),
                        .generation = json_i64(meta, "generation", 0)};
    cleanup_buf struct buf text = BUF_INIT(SIZE_MAX / 4);

    if (!t.ns || !t.name || !t.uid || !t.resource_version) {
        err_set(err, ERR_INVALID, TRAINJOB_KIND ": metadata without namespace, name, uid or resourceVersion");
        return NULL;
    }
    cleanup_json cJSON *view = view_of(object, false);
    cJSON_ReplaceItemInObjectCaseSensitive(view, "metadata", view_of(meta, true));
    if (json_write(view, &text, err) < 0)
        return NULL;
    /* Only where the whole is too large does its spec have to be measured. */
    t.too_large = spec && text.len > JOBTEXT_SPEC_BYTES && !fits(spec);
    if (t.too_large) {
        drop_spec(view, spec);
        buf_clear(&text);
        if (json_write(view, &text, err) < 0)
            return NULL;
    }
    t.json = buf_str(&text);
    t.json_len = text.len;
    return pack(&t);
}

void jobtext_free(struct jobtext *t)
{
    free(t);
}

struct trainjob *jobtext_decode(const struct jobtext *t, struct err *err)
{
    cJSON *tree = json_parse(t->json, t->json_len, err);

    struct trainjob *job = tree ? trainjob_decode(tree, err) : NULL;
    if (job && t->too_large)
        job->spec_error =
            arena_printf(&job->arena, "spec: expected at most %d bytes of JSON", JOBTEXT_SPEC_BYTES);
    return job;
}
