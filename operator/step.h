/* step.h - one action of a plan under way: its request, what the answer means for the pass, and what has to be asked
 * besides when a name is taken.
 *
 * Ownership: borrows the action, and all that struct step_pass names.
 * Order:     step_begin, then `ended` exactly once, perhaps from inside; by then the step is free again and the result
 *            says what came of it. After step_cancel there is none.
 */
#ifndef TK_OPERATOR_STEP_H
#define TK_OPERATOR_STEP_H

#include "kube/client.h"
#include "operator/apply_result.h"

/* What the steps of one pass share. */
struct step_pass {
    const struct transport *t;
    const char *ns, *job_uid;
    struct arena *a;
    struct apply_result *result;
    void (*ended)(void *ctx);
    void *ctx;
};

struct step {
    const struct step_pass *pass;
    const struct action *act; /* NULL: free */
    struct kube_call *call;   /* the request that it waits for */
};

/* Not for events, which are no requests. */
void step_begin(struct step *s, const struct step_pass *pass, const struct action *act);
void step_cancel(struct step *s);

#endif
