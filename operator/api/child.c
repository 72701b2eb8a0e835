/* child.c - decode the parts of a Service or Deployment that the planner uses. */
#include "common/text.h"
#include "operator/api/decode.h"
#include "operator/api/pod.h"

#include <string.h>

enum { TROUBLE_BYTES = 512 };

/* Read the most important condition that reports a problem; a Service has none. */
static void read_conditions(const cJSON *status, struct child *c)
{
    static const char *const PROBLEMS[][2] = {
        {"ReplicaFailure", "True"}, {"Progressing", "False"}, {"Available", "False"}};
    const cJSON *cond;
    size_t best = ARRAY_LEN(PROBLEMS);

    c->trouble = "";
    cJSON_ArrayForEach(cond, json_child(status, "conditions"))
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

struct child *child_decode(const cJSON *object, const struct err *unreadable, struct err *err)
{
    const cJSON *meta = json_child(object, "metadata");
    const char *hash = json_str(json_child(meta, "annotations"), ANNOTATION_SPEC_HASH);
    struct object_names n;

    if (decode_names(meta, "child", &n, err) < 0)
        return NULL;
    struct child c = {
        .ns = n.ns,
        .name = n.name,
        .uid = n.uid,
        .owner_uid = api_controller_uid(meta),
        .unreadable = unreadable ? unreadable->msg : "",
        .spec_hash = hash && strlen(hash) <= DECODE_LABEL_BYTES ? hash : "",
        .replicas = json_i64(json_child(object, "spec"), "replicas", 1),
        .available = json_i64(json_child(object, "status"), "availableReplicas", 0),
        .deleting = json_str(meta, "deletionTimestamp") != NULL,
    };
    read_conditions(json_child(object, "status"), &c);
    const char **const fields[] = {&c.ns,         &c.name,      &c.uid,    &c.owner_uid,
                                   &c.unreadable, &c.spec_hash, &c.trouble};
    return decode_pack(&c, sizeof(c), fields, ARRAY_LEN(fields));
}
