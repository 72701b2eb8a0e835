/* ring.c - the ring of orders and records between process and GPU, and waiting for a record. */
#include "trainer/run/resident/resident_state.h"

#include <math.h>

enum { CLOSE_MS = 500 }; /* for steps that are in flight when a run ends early */

/* Wait for a mark. With NCCL under a deadline: if a rank is lost, the others' all-reduce never ends. */
static int wait_for(struct resident *r, int mark, struct err *err)
{
    struct device_comm *c = r->p.pipeline->o.device_comm;

    if (c && c->wait(c, r->ctx->ops->event(r->ctx, mark), "a step", r->p.pipeline->o.timeout_ms, err))
        return -1;
    return r->ctx->ops->wait(r->ctx, mark, err);
}

int resident_arrived(struct resident *r, void *stream, struct err *err)
{
    struct device_comm *c = r->p.pipeline->o.device_comm;

    return c && r->fresh ? c->sync(c, stream, "a first step", r->p.pipeline->o.timeout_ms, err) : 0;
}

/* Wait for all launched work. Call it before any other wait for the device: only this one has a deadline. */
int resident_settle(struct resident *r, struct err *err)
{
    return r->launched ? wait_for(r, (int)((r->launched - 1) % RESIDENT_RING), err) : 0;
}

/* Whether device memory can be freed. Steps whose results are not needed any more may still wait for a lost
 * rank. */
bool resident_is_ours(struct resident *r)
{
    struct device_comm *c = r->p.pipeline->o.device_comm;
    struct err ignored;

    if (!c)
        return true;
    void *last = r->launched ? r->ctx->ops->event(r->ctx, (int)((r->launched - 1) % RESIDENT_RING)) : NULL;
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

/* Read the records of all steps before `end`. */
int resident_read(struct resident *r, int64_t end, uint32_t *flags, struct err *err)
{
    if (end <= r->seen)
        return 0;
    if (wait_for(r, (int)((end - 1) % RESIDENT_RING), err))
        return -1;
    for (; r->seen < end; r->seen++) {
        r->last = r->records[r->seen % RESIDENT_RING];
        *flags |= r->last.flags;
        if (r->norm)
            r->p.optim->grad_norm = (double)r->last.norm;
        if (r->last.halted) {
            *flags |= COLLECTIVES_NONFINITE;
            r->seen++;
            break; /* report the first one */
        }
    }
    return 0;
}

/* After a loss that is not finite the device takes no more steps, so its state does not match the step
 * counter: ERR_FATAL, unless the caller has already been told of the loss. */
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
