/* child.c - a Service or Deployment, cut down to what plan reads. */
#include "common/memory.h"
#include "operator/api/pod.h"

#include <string.h>

static const cJSON *at(const cJSON *node, const char *a, const char *b)
{
    return json_find(node, (const char *[]){a, b, NULL});
}

static const char *copy(char **to, const char *s)
{
    size_t len = strlen(s) + 1;
    char *p = memcpy(*to, s, len);

    *to += len;
    return p;
}

struct child *child_decode(const cJSON *object, struct err *err)
{
    const cJSON *meta = at(object, "metadata", NULL);
    const char *ns = json_str(meta, "namespace");
    const char *name = json_str(meta, "name");
    const char *uid = json_str(meta, "uid");
    const char *owner = api_controller_uid(meta);
    const char *hash = json_str(at(meta, "annotations", NULL), ANNOTATION_SPEC_HASH);

    if (!ns || !ns[0] || !name || !name[0] || !uid || !uid[0]) {
        err_set(err, ERR_INVALID, "an object without namespace, name or uid");
        return NULL;
    }
    hash = hash ? hash : "";
    struct child *c = memory_must(
        malloc(sizeof(*c) + strlen(ns) + strlen(name) + strlen(uid) + strlen(owner) + strlen(hash) + 5));
    char *to = (char *)(c + 1);
    *c = (struct child){
        .ns = copy(&to, ns),
        .name = copy(&to, name),
        .uid = copy(&to, uid),
        .owner_uid = copy(&to, owner),
        .spec_hash = copy(&to, hash),
        .replicas = json_i64(at(object, "spec", NULL), "replicas", 1),
        .available = json_i64(at(object, "status", NULL), "availableReplicas", 0),
        .deleting = json_str(meta, "deletionTimestamp") != NULL,
    };
    return c;
}

void child_free(struct child *c)
{
    free(c);
}
