/* trainjob_failures.c - check spec.runPolicy.podFailurePolicy, by the rules of a Job. */
#include "operator/api/trainjob.h"

enum { RULES_MAX = 20, PATTERNS_MAX = 20, CODES_MAX = 255, TYPE_BYTES = 316 };

static const char *const ACTIONS[] = {"FailJob", "Ignore", "Count", NULL};

/* An absent member that the API server would have refused. */
static int require(const struct json_at *at, const char *key, struct err *err)
{
    struct json_at m = json_member(at, key);

    return m.node ? 0 : json_err(&m, err, "expected a value, got nothing");
}

/* `zero`: whether 0 may stand in the list. */
static int check_codes(const struct json_at *list, bool zero, struct err *err)
{
    double before = -1;

    if (json_expect_array(list, CODES_MAX, err) < 0)
        return -1;
    for (struct json_at item = {0}; decode_next(list, &item);) {
        double v = cJSON_IsNumber(item.node) ? item.node->valuedouble : -1;
        if (!(v >= (zero ? 0 : 1) && v <= 255) || v != (int32_t)v)
            return json_err(&item, err, "expected an integer %d..255%s", zero ? 0 : 1,
                            zero ? "" : ": 0 is not a failure");
        if (v <= before)
            return json_err(&item, err, "expected a larger number than the one before it");
        before = v;
    }
    return 0;
}

/* s NULL: any may exist. */
static bool has_container(const struct trainjob_spec *s, const char *name)
{
    static const char *const LISTS[] = {"containers", "initContainers"};

    for (int i = 0; s && i < s->n_replica_specs; i++)
        for (size_t k = 0; k < ARRAY_LEN(LISTS); k++)
            if (json_item_with(
                    json_find(s->replica_specs[i].template, (const char *[]){"spec", LISTS[k], NULL}), "name",
                    name))
                return true;
    return !s;
}

static int check_exit_codes(const struct json_at *at, const struct trainjob_spec *s, struct err *err)
{
    static const char *const KNOWN[] = {"containerName", "operator", "values", NULL};
    static const char *const OPERATORS[] = {"In", "NotIn", NULL};
    struct json_at values = json_member(at, "values"), name = json_member(at, "containerName");
    const char *container = NULL;
    int in = 0;

    if (!at->node)
        return 0;
    if (decode_members(at, KNOWN, NULL, err) < 0 || decode_word(at, "operator", OPERATORS, &in, err) < 0 ||
        decode_text(at, "containerName", DECODE_LABEL_BYTES, &container, err) < 0 ||
        check_codes(&values, in != 0, err) < 0 || require(at, "operator", err) < 0)
        return -1;
    if (container && !has_container(s, container))
        return json_err(&name, err, "no template has a container or init container \"%s\"", container);
    return cJSON_GetArraySize(values.node) > 0
               ? 0
               : json_err(&values, err, "expected 1..%d exit codes, got none", CODES_MAX);
}

static int check_conditions(const struct json_at *list, struct err *err)
{
    static const char *const KNOWN[] = {"type", "status", NULL};
    static const char *const STATES[] = {"True", "False", "Unknown", NULL};

    if (json_expect_array(list, PATTERNS_MAX, err) < 0)
        return -1;
    for (struct json_at item = {0}; decode_next(list, &item);) {
        const char *type = NULL;
        int state = 0;
        if (decode_members(&item, KNOWN, NULL, err) < 0 ||
            decode_text(&item, "type", TYPE_BYTES, &type, err) < 0 ||
            decode_word(&item, "status", STATES, &state, err) < 0 || require(&item, "type", err) < 0)
            return -1;
    }
    return 0;
}

static int check_rule(const struct json_at *at, const struct trainjob_spec *s, struct err *err)
{
    static const char *const KNOWN[] = {"action", "onExitCodes", "onPodConditions", NULL};
    struct json_at codes = json_member(at, "onExitCodes");
    struct json_at conditions = json_member(at, "onPodConditions");
    int action = 0;

    if (decode_members(at, KNOWN, NULL, err) < 0 || decode_word(at, "action", ACTIONS, &action, err) < 0 ||
        check_exit_codes(&codes, s, err) < 0 || check_conditions(&conditions, err) < 0 ||
        require(at, "action", err) < 0)
        return -1;
    return (codes.node != NULL) != (cJSON_GetArraySize(conditions.node) > 0)
               ? 0
               : json_err(at, err, "expected onExitCodes or onPodConditions, one of them");
}

int trainjob_decode_failure_policy(const struct json_at *run_policy, const struct trainjob_spec *s,
                                   const cJSON **ret, struct err *err)
{
    static const char *const KNOWN[] = {"rules", NULL};
    struct json_at at = json_member(run_policy, "podFailurePolicy");
    struct json_at rules = json_member(&at, "rules");

    if (decode_members(&at, KNOWN, NULL, err) < 0 || json_expect_array(&rules, RULES_MAX, err) < 0)
        return -1;
    for (struct json_at item = {0}; decode_next(&rules, &item);)
        if (check_rule(&item, s, err) < 0)
            return -1;
    *ret = rules.node;
    return 0;
}
