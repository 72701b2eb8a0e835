/* apply.h - run the actions of a plan in order; the first failure ends the pass.
 *
 * Ownership: apply_new copies nothing: plan, arena and target's strings live until `done`, and so does the
 *            result that is passed to it.
 * Errors:    in result.err. Reaching what was wanted is no error: creating an object that exists and is this
 *            job's, deleting one that is gone.
 * Order:     one request after the other. Only consecutive creates of pods run in parallel, and consecutive
 *            deletes of pods, up to 8. Of the creates the first pod of each replicaSpec runs alone, then, for
 *            each create that succeeded, one more at a time, so that an exhausted quota is asked once. When
 *            the target says that nothing may go on, the pass ends as if the plan ended there. After a failure nothing more is begun, and `done` is
 *            called when the requests under way have ended; their effects are part of the result. `done` is
 *            called exactly once, unless cancelled, and the struct is freed after it. Events are recorded at
 *            their place in the order, so that a status that could not be written announces nothing.
 */
#ifndef TK_OPERATOR_APPLY_H
#define TK_OPERATOR_APPLY_H

#include "kube/recorder.h"
#include "operator/step.h"

struct apply;

struct apply *apply_new(const struct kube_transport *t, struct kube_recorder *r,
                        const struct apply_target *target, const struct plan *plan, struct arena *a,
                        void (*done)(void *ctx, const struct apply_result *result), void *ctx);
void apply_run(struct apply *ap); /* `done` may be called inside, which frees *ap */
void apply_cancel(struct apply *ap);

#endif
