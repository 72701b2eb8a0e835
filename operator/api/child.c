/* child.c - decode the parts of a Service or Deployment that the planner uses. */
#include "common/memory.h"
#include "common/text.h"
#include "operator/api/decode.h"
#include "operator/api/pod.h"

#include <string.h>

enum { TROUBLE_BYTES = 512 };

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

/* Read the most important condition that reports a problem; a Service has none. */
static void read_conditions(const cJSON *status, struct child *c)
{
    static const char *const PROBLEMS[][2] = {
        {"ReplicaFailure", "True"}, {"Progressing", "False"}, {"Available", "False"}};
    const cJSON *cond;
    size_t best = ARRAY_LEN(PROBLEMS);

    c->trouble = "";
    cJSON_ArrayForEach(cond, at(status, "conditions", NULL))
    {
        const char *type = json_str(cond, "type"), *state = json_str(cond, "status");
        const char *message = json_str(cond, "message");
        for (size_t i = 0; type && state && i < ARRAY_LEN(PROBLEMS); i++) {
            if (strcmp(type, PROBLEMS[i][0]) != 0 || strcmp(state, PROBLEMS[i][1]) != 0)
                continue;
            c->refused |= i == 0;
            if (i == 2)
                c->unavailable_ms = decode_instant(cond, "lastTransitionTime");
            if (i < best && message) {
                best = i;
                c->trouble = text_tail(message, TROUBLE_BYTES).p;
            }
        }
    }
}

static struct child *decode(const cJSON *object, const struct err *unreadable, struct err *err)
{
    const cJSON *meta = at(object, "metadata", NULL);
    const char *owner = api_controller_uid(meta);
    const char *hash = json_str(at(meta, "annotations", NULL), ANNOTATION_SPEC_HASH);
    const char *why = unreadable ? unreadable->msg : "";
    struct object_names n;
    struct child said = {0};

    if (decode_names(meta, "child", &n, err) < 0)
        return NULL;
    hash = hash && strlen(hash) <= DECODE_LABEL_BYTES ? hash : "";
    read_conditions(at(object, "status", NULL), &said);
    struct child *c =
        memory_must(malloc(sizeof(*c) + strlen(n.ns) + strlen(n.name) + strlen(n.uid) + strlen(owner) +
                           strlen(why) + strlen(hash) + strlen(said.trouble) + 7));
    char *to = (char *)(c + 1);
    *c = (struct child){
        .ns = copy(&to, n.ns),
        .name = copy(&to, n.name),
        .uid = copy(&to, n.uid),
        .owner_uid = copy(&to, owner),
        .unreadable = copy(&to, why),
        .spec_hash = copy(&to, hash),
        .replicas = json_i64(at(object, "spec", NULL), "replicas", 1),
        .available = json_i64(at(object, "status", NULL), "availableReplicas", 0),
        .trouble = copy(&to, said.trouble),
        .refused = said.refused,
        .unavailable_ms = said.unavailable_ms,
        .deleting = json_str(meta, "deletionTimestamp") != NULL,
    };
    return c;
}

struct child *child_decode(const cJSON *object, struct err *err)
{
    return decode(object, NULL, err);
}

struct child *child_decode_unreadable(const cJSON *names, const struct err *why, struct err *err)
{
    return decode(names, why, err);
}

void child_free(struct child *c)
{
    free(c);
}
