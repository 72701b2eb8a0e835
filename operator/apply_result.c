/* apply_result.c - the first failure counts, expectations add up. */
#include "operator/apply_result.h"

#include <stdio.h>

void apply_result_init(struct apply_result *r, int n_actions, struct arena *a)
{
    *r = (struct apply_result){.ok = true, .retry_after_ms = -1};
    r->expected = arena_array(a, (size_t)n_actions + 1, struct expectation);
    r->gone_uids = arena_array(a, (size_t)n_actions + 1, const char *);
}

void apply_result_expect(struct apply_result *r, const struct action *act, const char *uid, bool present)
{
    struct expectation *e = &r->expected[r->n_expected++];

    e->child = act->child;
    e->present = present;
    e->removed = !present && act->force;
    snprintf(e->uid, sizeof(e->uid), "%s", uid ? uid : "");
}

bool apply_result_fail(struct apply_result *r, const struct err *err, int64_t retry_after_ms)
{
    bool first = r->ok;

    r->ok = false;
    if (first) {
        r->err = *err;
        r->retry_after_ms = retry_after_ms;
    }
    return first;
}

void apply_result_refuse(struct apply_result *r, const struct action *act, enum problem_kind kind,
                         const struct err *err)
{
    if (!apply_result_fail(r, err, -1))
        return;
    snprintf(r->problem_name, sizeof(r->problem_name), "%s", act->name);
    snprintf(r->problem_message, sizeof(r->problem_message), "%s", err->msg);
    r->problem = (struct plan_problem){.kind = kind, .child = act->child, .name = r->problem_name};
    r->problem.message = r->problem_message;
}
