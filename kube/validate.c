/* validate.c - check what the server sends for a collection: watch events, objects, list metadata, bookmarks. */
#include "kube/validate.h"

#include "common/cleanup.h"
#include "common/json.h"

#include <string.h>

int validate_object(const struct kube_resource *r, const cJSON *object, struct err *err)
{
    const char *kind = json_str(object, "kind");

    if (kind && strcmp(kind, r->kind) != 0)
        return err_set(err, ERR_INVALID, "expected a %s, got a %.60s", r->kind, kind);
    if (!skim_has_names(object))
        return err_set(err, ERR_INVALID, "a %s without metadata.name, uid or resourceVersion", r->kind);
    return 0;
}

static int read_kind(const char *type, enum watch_event_kind *ret, struct err *err)
{
    static const struct {
        const char *type;
        enum watch_event_kind kind;
    } rows[] = {
        {"ADDED", WATCH_UPSERT},      {"MODIFIED", WATCH_UPSERT}, {"DELETED", WATCH_REMOVED},
        {"BOOKMARK", WATCH_BOOKMARK}, {"ERROR", WATCH_ERROR},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strcmp(type, rows[i].type) == 0) {
            *ret = rows[i].kind;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID, "unknown event type \"%.40s\"", type);
}

int validate_event(const struct kube_resource *r, const cJSON *event, struct watch_event *ret,
                   struct err *err)
{
    const char *type = json_str(event, "type");
    const cJSON *object = json_find(event, (const char *[]){"object", NULL});
    const cJSON *meta = json_find(object, (const char *[]){"metadata", NULL});

    if (!type || !cJSON_IsObject(object))
        return err_set(err, ERR_INVALID, "expected \"type\" and \"object\"");
    *ret = (struct watch_event){.object = object};
    if (read_kind(type, &ret->kind, err) < 0)
        return -1;
    if (ret->kind == WATCH_ERROR)
        return 0;
    ret->version = json_str(meta, "resourceVersion");
    if (ret->kind != WATCH_BOOKMARK)
        return validate_object(r, object, err);
    if (!ret->version)
        return err_set(err, ERR_INVALID, "a bookmark without metadata.resourceVersion");
    return 0;
}

int validate_skimmed_event(const cJSON *event, struct watch_event *ret, struct err *err)
{
    const char *type = json_str(event, "type");
    const cJSON *object = json_find(event, (const char *[]){"object", NULL});

    if (!event)
        return err_set(err, ERR_INVALID, "an incomplete event");
    *ret = (struct watch_event){.object = object};
    if (read_kind(type ? type : "", &ret->kind, err) < 0)
        return -1;
    if (ret->kind == WATCH_ERROR || ret->kind == WATCH_BOOKMARK)
        return err_set(err, ERR_INVALID, "an event of type \"%s\" that cannot be read", type);
    if (!skim_has_names(object))
        return err_set(err, ERR_INVALID, "an object whose name, UID or resourceVersion cannot be read");
    ret->version = json_str(json_find(object, (const char *[]){"metadata", NULL}), "resourceVersion");
    return 0;
}

int validate_list(const struct kube_resource *r, const cJSON *list, struct list_meta *ret, struct err *err)
{
    const char *kind = json_str(list, "kind");
    const cJSON *meta = json_find(list, (const char *[]){"metadata", NULL});
    const char *version = json_str(meta, "resourceVersion");
    const char *more = json_str(meta, "continue");
    size_t kind_len = strlen(r->kind);

    if (!kind || strncmp(kind, r->kind, kind_len) != 0 || strcmp(kind + kind_len, "List") != 0 || !version ||
        !version[0])
        return err_set(err, ERR_INVALID,
                       "list: expected a %sList with metadata.resourceVersion, got \"%.60s\"", r->kind,
                       kind ? kind : "no kind");
    *ret = (struct list_meta){version, more && more[0] ? more : NULL};
    return 0;
}
