/* pass.h - one pass over one job: plan, apply, and schedule the next. For controller.c, which decides when.
 *
 * Ownership: a pass is attached to its key's work (kube_work_attach) and freed with it. It borrows the controller.
 * Order:     one pass per key at a time. At its end the work is done, retried or set to a time.
 */
#ifndef TK_OPERATOR_PASS_H
#define TK_OPERATOR_PASS_H

#include "operator/budget.h"
#include "operator/controller.h"
#include "operator/keystate.h"
#include "operator/term.h"

/* How long a pass waits that found no room in the budget. */
enum { PASS_NO_ROOM_MS = 250 };

/* The controller's state, which all passes share. */
struct controller {
    struct kube_loop *loop;
    const struct kube_transport *transport;
    struct kube_recorder *recorder;
    const struct log *log;
    struct controller_options options;
    struct kube_reconciler *reconciler;
    struct watches watches;
    struct kube_store *states; /* struct keystate by UID, of this term */
    struct term term;
    struct poller *poller; /* of those that run */
    struct budget budget;  /* of the passes under way */
    struct controller_counts counts;
    int64_t begun_ms; /* of controller_mono: when the key in hand came */
};

static inline int64_t controller_now(const struct controller *c)
{
    return kube_loop_now_ms(c->loop);
}

/* The clock of controller_now, which stands still within a turn of the loop. */
static inline int64_t controller_mono(const struct controller *c)
{
    return kube_loop_clock(c->loop).mono_ms(kube_loop_clock(c->loop).ctx);
}

static inline int64_t controller_wall(const struct controller *c)
{
    struct clock clock = kube_loop_clock(c->loop);

    return clock.wall_ms(clock.ctx);
}

/* What this process knows of a job beyond the caches; made where there is none. */
struct keystate *controller_state_of(struct controller *c, const char *uid);

/* Begin the pass. `job` is borrowed for the call. */
void pass_begin(struct controller *c, struct kube_work *w, const struct trainjob *job, struct keystate *k);

#endif
