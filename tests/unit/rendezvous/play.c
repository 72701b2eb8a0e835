/* play.c - see play.h. */
#include "play.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

const struct quorum_config play_fixed_2 = {.min = 2,
                                           .max = 2,
                                           .restarts = 2,
                                           .join_ms = 600000,
                                           .last_call_ms = 30000,
                                           .keep_alive_ms = 5000,
                                           .keep_alive_attempts = 3};

struct quorum_config play_elastic(int min, int max)
{
    struct quorum_config c = play_fixed_2;

    c.min = min;
    c.max = max;
    return c;
}

void play_hear(struct quorum *q, int64_t ticket, enum node_phase phase, int64_t now)
{
    static int64_t beat;
    struct meeting_node n = {.phase = phase,
                             .round = q->state.round,
                             .beat = ++beat,
                             .nproc = ticket + 1,
                             .wanted = -1,
                             .leaders = ticket == 2,
                             .port = 1000 + ticket,
                             .signal = 15,
                             .cause = {.rank = ticket, .pid = 77, .status = 7 << 8, .host = "h"}};

    snprintf(n.addr, sizeof(n.addr), "10.0.0.%d", (int)ticket);
    if (phase == NODE_JOINING && q->state.stage == STAGE_RUNNING)
        n.round++;
    quorum_hear(q, ticket, &n, now);
}

void play_failure(struct quorum *q, int64_t ticket, int code, int unsure, int64_t now)
{
    struct meeting_node n = {.phase = NODE_FAILED, .round = q->state.round, .beat = now + code, .nproc = 1};

    n.cause = (struct meeting_cause){
        .rank = ticket, .pid = 5, .status = code << 8, .unsure = unsure, .wall_ms = now, .host = "h"};
    quorum_hear(q, ticket, &n, now);
}

void play_all(struct quorum *q, int n, enum node_phase phase, int64_t now)
{
    for (int64_t t = 1; t <= n; t++)
        play_hear(q, t, phase, now);
}

void play_expect(const struct quorum *q, int n, const int64_t *tickets)
{
    assert_int_equal(q->state.stage, STAGE_RUNNING);
    assert_int_equal(q->state.n, n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(q->state.members[i].ticket, tickets[i]);
        assert_int_equal(q->state.members[i].nproc, tickets[i] + 1);
    }
}

void play_begin(struct quorum *q, const struct quorum_config *c, int n)
{
    quorum_init(q, c, 0);
    play_all(q, n, NODE_JOINING, 1);
    if (!quorum_step(q, 1)) {
        play_all(q, n, NODE_JOINING, 10000);
        quorum_step(q, 10000);
        play_all(q, n, NODE_JOINING, 20000);
        quorum_step(q, 20000);
        play_all(q, n, NODE_JOINING, 1 + c->last_call_ms);
        assert_true(quorum_step(q, 1 + c->last_call_ms));
    }
    assert_int_equal(q->state.stage, STAGE_RUNNING);
    play_all(q, n, NODE_RUNNING, 1 + c->last_call_ms);
    quorum_step(q, 1 + c->last_call_ms);
}
