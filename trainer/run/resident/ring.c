/* ring.c - the ring of orders and records between process and GPU, and waiting for a record. */
#include "trainer/run/resident/resident_state.h"

#include <math.h>

enum { CLOSE_MS = 500 }; /* for steps that are in flight when a run ends early */

/* With NCCL under a deadline: a rank that is gone leaves the others in a sum that never ends. */
int resident_wait(struct resident *r, int mark, struct err *err)
{
    struct device_comm *c = r->p.pipeline->o.device_comm;

    if (c && c->wait(c, device_mark_event(r->ctx, mark), "a step", r->p.pipeline->o.timeout_ms, err))
        return -1;
    return device_wait(r->ctx, mark, err);
}

int resident_arrived(struct resident *r, void *stream, struct err *err)
{
    struct device_comm *c = r->p.pipeline->o.device_comm;

    return c && r->fresh ? c->sync(c, stream, "a first step", r->p.pipeline->o.timeout_ms, err) : 0;
}

/* What was launched is done. Whoever waits for the device in any other way asks for this first: nothing else has a
 * deadline. */
int resident_settle(struct resident *r, struct err *err)
{
    return r->launched ? resident_wait(r, (int)((r->launched - 1) % RESIDENT_RING), err) : 0;
}

/* Is the device there to give anything back to? Steps that nobody asks about any more may wait for a rank that is gone. */
bool resident_is_ours(struct resident *r)
{
    struct device_comm *c = r->p.pipeline->o.device_comm;
    struct err ignored;

    if (!c)
        return true;
    void *last = r->launched ? device_mark_event(r->ctx, (int)((r->launched - 1) % RESIDENT_RING)) : NULL;
    return !c->lost && (!last || !c->wait(c, last, "the last steps", CLOSE_MS, &ignored));
}

struct step_order resident_order_of(const struct resident *r, int64_t step, double lr)
{
    const struct optim *o = r->p.optim;
    struct step_order order = {.first = r->sequence ? 0 : step * r->p.pipeline->o.batch, .step = o->step};

    for (int decay = 0; decay < 2; decay++)
        order.update[decay] = optim_scalars(o, lr, decay, o->step + 1);
    return order;
}

/* The records of all steps before `end`. */
int resident_read(struct resident *r, int64_t end, uint32_t *flags, struct err *err)
{
    if (end <= r->seen)
        return 0;
    if (resident_wait(r, (int)((end - 1) % RESIDENT_RING), err))
        return -1;
    for (; r->seen < end; r->seen++) {
        r->last = r->records[r->seen % RESIDENT_RING];
        *flags |= r->last.flags;
        if (r->norm)
            r->p.optim->grad_norm = (double)r->last.norm;
        if (r->last.halted) {
            *flags |= COLLECTIVES_NONFINITE;
            r->seen++;
            break; /* the first of them is the one to tell */
        }
    }
    return 0;
}

/* Behind a loss that is no number the device takes no more steps, and what it has is not what the counters say. Who has been
 * told may look at it. */
int resident_check_steps(const struct resident *r, struct err *err)
{
    for (int64_t i = r->seen; i < r->launched && !r->last.halted; i++) {
        const struct step_record *at = &r->records[i % RESIDENT_RING];
        if (at->halted)
            return err_set(err, ERR_FATAL, "the loss is %s (step %lld): try a lower --lr",
                           isinf(at->loss) ? "infinite" : "not a number",
                           (long long)(r->p.optim->step - (r->launched - 1 - i)));
    }
    return 0;
}
