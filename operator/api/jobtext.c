/* jobtext.c - what is kept of the object, packed into one block; and back. */
#include "operator/api/jobtext.h"

#include <string.h>

/* Written by everyone who ever touched the object, read by none of us; often the larger part of it. */
static bool is_ballast(const cJSON *member)
{
    return strcmp(member->string, "managedFields") == 0 || strcmp(member->string, "annotations") == 0;
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
            abort(); /* out of memory */
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
    struct jobtext *t = malloc(bytes);
    if (!t)
        abort();
    char *to = (char *)(t + 1);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        copies[i] = add_text(&to, texts[i], strlen(texts[i]));
    *t = (struct jobtext){copies[0], copies[1], copies[2], copies[3], from->generation, NULL, from->json_len};
    t->json = add_text(&to, from->json, from->json_len);
    return t;
}

struct jobtext *jobtext_new(const cJSON *object, struct err *err)
{
    const cJSON *meta = json_find(object, (const char *[]){"metadata", NULL});
    struct jobtext t = {json_str(meta, "namespace"),
                        json_str(meta, "name"),
                        json_str(meta, "uid"),
                        json_str(meta, "resourceVersion"),
                        json_i64(meta, "generation", 0),
                        NULL,
                        0};
    cleanup_buf struct buf text = BUF_INIT(SIZE_MAX / 4);

    if (!t.ns || !t.name || !t.uid || !t.resource_version) {
        err_set(err, ERR_INVALID, TRAINJOB_KIND ": metadata without namespace, name, uid or resourceVersion");
        return NULL;
    }
    cleanup_json cJSON *view = view_of(object, false);
    cJSON_ReplaceItemInObjectCaseSensitive(view, "metadata", view_of(meta, true));
    if (json_write(view, &text, err) < 0)
        return NULL;
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

    return tree ? trainjob_decode(tree, err) : NULL;
}
