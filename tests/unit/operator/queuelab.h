/* queuelab.h - jobs in a queue of Kueue, for tests in the lab. */
#ifndef TK_TESTS_OPERATOR_QUEUELAB_H
#define TK_TESTS_OPERATOR_QUEUELAB_H

#include "lab.h"
#include "test.h"

#include <string.h>

#define QUEUED(members, replicas)                                                                            \
    "{'metadata':{'labels':{'kueue.x-k8s.io/queue-name':'team'}},'spec':{" members                           \
    "'replicaSpecs':[{'type':'node','replicas':" replicas                                                    \
    ",'restartPolicy':'ExitCode','template':{'spec':{'containers':[{'name':'pytorch','image':'i','"          \
    "resources':"                                                                                            \
    "{'limits':{'nvidia.com/gpu':1}}}]}}}]}}"

static inline struct lab *begin(void **state, int (*script)(int attempt, int index))
{
    struct lab *l = lab_begin(state, script);

    lab_kueue_install(l);
    l->collects = true;
    return l;
}

static inline int pods(struct lab *l)
{
    return fake_count(l->server, LAB_PODS);
}

static inline bool has_reason(struct lab *l, const char *part)
{
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);
    const char *reason = json_str(json_child(job, "status"), "reason");

    return reason && strstr(reason, part);
}

static inline void settle(struct lab *l)
{
    l->idle = 0;
    LAB_UNTIL(l, lab_settled(l));
    const char *broken = lab_broken_queue_rule(l, true);
    if (!broken)
        broken = lab_broken_rule(l, FAKE_RULES_ALL);
    if (broken)
        lab_explain(l);
    assert_null(broken);
}

static inline const cJSON *find(const cJSON *node, const char *a, const char *b)
{
    return json_find(node, (const char *[]){a, b, NULL});
}

static inline int asked(struct lab *l, const char *method, const char *part)
{
    return fake_log_count(l->server, method, part);
}

static inline int64_t count(struct lab *l)
{
    cleanup_json cJSON *w = lab_workload(l);

    return json_i64(cJSON_GetArrayItem(find(w, "spec", "podSets"), 0), "count", -1);
}

#define EDIT(resources, more)                                                                                \
    "{'spec':{'replicaSpecs':[{'type':'node','replicas':2,'restartPolicy':'ExitCode','template':{'spec':"    \
    "{" more "'containers':[{'name':'pytorch','image':'i','resources':{'limits':{" resources "}}}]}}}]}}"

#define ELASTIC                                                                                              \
    "'torchrunConfig':{'enabled':true,'maxRestarts':1},'elastic':{'enabled':true,'minReplicas':1,'"          \
    "maxReplicas':4,'expectedReplicas':3},"

#endif
