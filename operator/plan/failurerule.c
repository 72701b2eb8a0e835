/* failurerule.c - find the first rule of podFailurePolicy that matches a failed pod, as the Job controller does. */
#include "operator/plan/failurerule.h"

#include <stdlib.h>
#include <string.h>

/* One line of pod.evidence: a container and its exit code, or a condition and its status. */
struct fact {
    char kind;
    struct sv what, how;
};

/* Take the next line; false: there is none. */
static bool next_fact(struct sv *text, struct fact *ret)
{
    struct sv line, kind;

    *ret = (struct fact){0};
    if (!sv_next(text, '\n', &line))
        return false;
    if (sv_next(&line, '\t', &kind) && kind.len == 1 && sv_next(&line, '\t', &ret->what) &&
        sv_next(&line, '\t', &ret->how))
        ret->kind = kind.p[0];
    return true;
}

/* The code is not 0. */
static bool matches_code(const cJSON *on, const struct fact *f)
{
    const char *container = json_str(on, "containerName");
    bool in = strcmp(json_str(on, "operator"), "In") == 0;
    const cJSON *value;
    int64_t code = 0;

    if (f->kind != 'c' || (container && !sv_eq(f->what, container)) ||
        !sv_i64(f->how, INT32_MIN, INT32_MAX, &code))
        return false;
    cJSON_ArrayForEach(value, json_find(on, (const char *[]){"values", NULL}))
    {
        if (value->valuedouble == (double)code)
            return in;
    }
    return !in;
}

static bool matches_condition(const cJSON *patterns, const struct fact *f)
{
    const cJSON *pattern;

    cJSON_ArrayForEach(pattern, patterns)
    {
        const char *state = json_str(pattern, "status");
        if (f->kind == 'p' && sv_eq(f->what, json_str(pattern, "type")) &&
            sv_eq(f->how, state ? state : "True"))
            return true;
    }
    return false;
}

static bool find_match(const cJSON *rule, const char *evidence, struct fact *ret)
{
    const cJSON *codes = json_find(rule, (const char *[]){"onExitCodes", NULL});
    const cJSON *patterns = json_find(rule, (const char *[]){"onPodConditions", NULL});
    struct sv rest = sv_from(evidence);

    while (next_fact(&rest, ret))
        if (codes ? matches_code(codes, ret) : matches_condition(patterns, ret))
            return true;
    return false;
}

/* In the words of the Job controller. */
static const char *describe(const struct planner *p, const struct slot *s, const struct fact *f, int rule)
{
    if (f->kind == 'c')
        return arena_printf(
            p->a, "Container %.*s for pod %s/%s failed with exit code %.*s matching FailJob rule at index %d",
            (int)f->what.len, f->what.p, p->job->ns, s->name, (int)f->how.len, f->how.p, rule);
    return arena_printf(p->a, "Pod %s/%s has condition %.*s matching FailJob rule at index %d", p->job->ns,
                        s->name, (int)f->what.len, f->what.p, rule);
}

static void decide(const struct planner *p, const struct slot *s, const char *action, const struct fact *f,
                   int rule, struct verdict *v)
{
    if (strcmp(action, "Ignore") == 0) {
        v->class = VERDICT_UNCOUNTED;
    } else if (strcmp(action, "Count") == 0) {
        v->class = VERDICT_COUNTED;
    } else {
        v->class = VERDICT_FAIL_JOB;
        v->rule = describe(p, s, f, rule);
    }
}

/* Of a pod that is gone the status has the exit code of the training container. */
static const char *evidence_of(const struct planner *p, const struct slot *s)
{
    if (s->pod)
        return s->pod->evidence;
    bool known = s->seen && s->seen->container && s->seen->exit_code > 0;
    return known ? arena_printf(p->a, "c\t%s\t%d\n", s->seen->container, s->seen->exit_code) : "";
}

void failurerule_apply(const struct planner *p, const struct slot *s, struct verdict *v)
{
    const cJSON *rules = p->spec->run_policy.failure_rules;
    bool ended = !s->pod || pod_ended(s->pod);
    const cJSON *rule;
    struct fact fact;
    int i = 0;

    if (!rules || v->class <= VERDICT_SUCCESS)
        return;
    const char *evidence = evidence_of(p, s);
    cJSON_ArrayForEach(rule, rules)
    {
        if (!ended && json_find(rule, (const char *[]){"onExitCodes", NULL})) {
            v->class = VERDICT_NONE;
            return;
        }
        if (find_match(rule, evidence, &fact)) {
            decide(p, s, json_str(rule, "action"), &fact, i, v);
            return;
        }
        i++;
    }
}
