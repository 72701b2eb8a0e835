/* apply.h - carry out what plan decided, in its order; the first failure ends the pass.
 *
 * Ownership: apply_new copies nothing: actions and target live until `done`, as does the result given to it.
 * Errors:    result.err. Already what was wanted is no error: creating what is there and ours, deleting what
 *            is gone.
 * Order:     one request after the other. Only pods in a row are created beside each other: first one of each
 *            replicaSpec, and one more at a time for each that went well, up to 8, so that a spent quota is asked once. After a failure nothing is
 *            begun any more, and `done` comes when what was under way has ended; what that achieved counts.
 *            Exactly one `done`, after which the struct is gone, unless cancelled. Events are recorded when
 *            their turn comes, so a status that could not be written announces nothing.
 */
#ifndef TK_OPERATOR_APPLY_H
#define TK_OPERATOR_APPLY_H

#include "kube/recorder.h"
#include "operator/step.h"

struct apply;

struct apply *apply_new(const struct kube_transport *t, struct kube_recorder *r,
                        const struct apply_target *target, const struct plan *plan, struct arena *a,
                        void (*done)(void *ctx, const struct apply_result *result), void *ctx);
void apply_run(struct apply *ap); /* `done` may come from inside, and then *ap is gone */
void apply_cancel(struct apply *ap);

#endif
