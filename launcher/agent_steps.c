/* agent_steps.c - the file of what the ranks do: make it, watch how long their steps take, and tell which rank is slower than
 * the others. */
#include "common/clock.h"
#include "launcher/agent_state.h"

void agent_open_steps(struct agent *g)
{
    const int n = g->options->nproc;

    g->rank_state = rank_state_make(n, &g->slots, g->identity.rank_state);
    straggler_init(&g->straggler, n, &g->arena);
}

void agent_begin_steps(struct agent *g)
{
    rank_state_clear(g->slots, g->options->nproc);
    straggler_begin(&g->straggler, g->identity.first_rank);
}

static bool measure(struct agent *g)
{
    for (int i = 0; i < g->options->nproc; i++) {
        const struct rank_slot *s = &g->slots[i];
        g->straggler.now[i] = (struct straggler_count){
            .step = atomic_load_explicit(&s->step, memory_order_relaxed),
            .own_us = atomic_load_explicit(&s->step_us, memory_order_relaxed),
            .wait_us = atomic_load_explicit(&s->wait_us, memory_order_relaxed),
        };
    }
    return straggler_measure(&g->straggler);
}

void agent_look_at_steps(struct agent *g)
{
    struct straggler *s = &g->straggler;

    if (!g->slots)
        return;
    if (measure(g) && g->meets)
        meet_say_steps(g->nodes.meet, &s->steps);
    struct steps run = s->steps;
    if (g->meets && !meet_steps(g->nodes.meet, &run))
        return; /* another node judges */
    straggler_judge(s, &run);
    tracker_straggler(&g->tracker, (int)s->rank, s->ratio);
    if (straggler_due(s, clock_mono_ms()))
        agent_say(g, "torchrun: rank %d takes %.2f times the median step time: the other ranks wait for it\n",
                  (int)s->rank, s->ratio);
}
