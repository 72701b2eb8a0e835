/* world.c - the simulated launchers: their loops, ranks and ends, what happens to them, and the judge. */
#include "world.h"
#include "attack.h"
#include "world_net.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The judge: no round is begun twice by a node, or with other members than by another node, or beside ranks that still run; none
 * is begun after the run has ended well; a round whose ranks have all ended well, long after the last fault and before no other,
 * is the last one and ends with 0 everywhere; nobody loops without the time going on; nobody lives for ever. */

enum { LAG_MS = 20, SLOW_MS = 400, CALM_MS = 60000 };

/* With TK_TRACE in the environment: what happens, and when. */
__attribute__((format(printf, 2, 3))) static void trace(const struct world *w, const char *fmt, ...)
{
    va_list args;

    if (!getenv("TK_TRACE"))
        return;
    va_start(args, fmt);
    printf("%9lld ", (long long)w->now_ms);
    vprintf(fmt, args);
    printf("\n");
    va_end(args);
}

uint64_t world_draw(struct world *w, uint64_t below)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return below ? (w->random >> 11) % below : 0;
}

int64_t world_now(const struct world *w, const struct launcher *p)
{
    return w->now_ms - p->awake.stopped_ms;
}

void world_init(struct world *w, uint64_t seed, const struct quorum_config *q, int launchers)
{
    memset(w, 0, sizeof(*w));
    w->random = seed * 0x9e3779b97f4a7c15u + 0x1234567;
    w->quorum = *q;
    w->n_launchers = launchers;
    w->host = -1;
    w->work_ms = 1000;
    w->stop_ms = 2000;
    for (int i = 0; i < 8; i++)
        (void)world_draw(w, 2);
}

void world_add(struct world *w, enum world_kind kind, int who, int64_t at_ms, int64_t ms)
{
    if (w->n_events < WORLD_EVENTS)
        w->events[w->n_events++] = (struct world_event){at_ms, ms, kind, who};
}

static void start(struct world *w, int who)
{
    struct launcher *p = &w->launchers[who];
    struct node_config c = {.run_id = "run",
                            .join_ms = w->quorum.join_ms,
                            .keep_alive_ms = w->quorum.keep_alive_ms,
                            .keep_alive_attempts = w->quorum.keep_alive_attempts,
                            .nproc = 1 + who % 3,
                            .wanted = w->quorum.fixed_ranks ? who % (int)w->quorum.max : -1,
                            .port = 20000 + who,
                            .role = "default"};

    for (size_t i = 0; i < sizeof(c.id); i++)
        c.id[i] = (uint8_t)world_draw(w, 256);
    for (size_t i = 0; i < sizeof(c.seed); i++)
        c.seed[i] = (uint8_t)world_draw(w, 256);
    c.key = p->key == KEY_NONE ? (struct jobkey){0} : w->key;
    c.key.bytes[7] ^= p->key == KEY_OTHER;
    p->started = p->alive = true;
    p->exit_code = -1;
    p->lag_ms = 1;
    node_init(&p->node, &c, world_now(w, p));
    if (!p->hosts || w->host >= 0)
        return;
    struct leader_config l = {.quorum = w->quorum, .run_id = "run", .key = c.key};
    for (size_t i = 0; i < sizeof(l.id); i++)
        l.id[i] = (uint8_t)world_draw(w, 256);
    for (size_t i = 0; i < sizeof(l.seed); i++)
        l.seed[i] = (uint8_t)world_draw(w, 256);
    leader_init(&p->leader, &l, world_now(w, p));
    p->leads = true;
    w->host = who;
}

static struct world_round *round_of(struct world *w, int leader, int64_t round)
{
    for (int i = 0; i < w->n_rounds; i++)
        if (w->rounds[i].leader == leader && w->rounds[i].round == round)
            return &w->rounds[i];
    if (w->n_rounds == WORLD_ROUNDS) {
        w->wrong = "too many rounds";
        return &w->rounds[0];
    }
    w->rounds[w->n_rounds] = (struct world_round){.leader = leader, .round = round, .began_ms = w->now_ms};
    return &w->rounds[w->n_rounds++];
}

/* The launcher whose leader this node follows. */
static int leader_of(const struct world *w, const struct launcher *p)
{
    for (int i = 0; i < w->n_launchers; i++)
        if (w->launchers[i].leads && memcmp(w->launchers[i].leader.config.id, p->node.line.leader, 16) == 0)
            return i;
    return -1;
}

static struct launcher *member(struct world *w, const struct world_round *r, int i)
{
    for (int k = 0; k < w->n_launchers; k++) {
        struct launcher *p = &w->launchers[k];
        if (p->alive && p->running && p->node.ticket == r->tickets[i] && leader_of(w, p) == r->leader &&
            p->round == r->round)
            return p;
    }
    return NULL;
}

/* Ranks of a member are gone: the others notice, or stand still. */
static void break_round(struct world *w, struct world_round *r)
{
    r->broken = true;
    for (int i = 0; i < r->n; i++) {
        struct launcher *p = member(w, r, i);
        if (!p || p->stopping || p->bad)
            continue;
        p->stuck = true;
        p->ranks_end_ms = WORLD_NEVER;
        if (world_draw(w, 2)) {
            p->ranks_end_ms = w->now_ms + 20 + (int64_t)world_draw(w, 5000);
            p->bad = true;
            p->code = world_draw(w, 2) ? 1 : 140;
            p->unsure = 1;
        }
    }
}

static void stand_still(struct world *w, struct world_round *r)
{
    r->broken = true;
    for (int i = 0; i < r->n; i++) {
        struct launcher *p = member(w, r, i);
        if (!p || p->stopping || p->bad)
            continue;
        p->stuck = true;
        p->ranks_end_ms = WORLD_NEVER;
    }
}

static void begin_ranks(struct world *w, int who, int rank)
{
    struct launcher *p = &w->launchers[who];
    const struct meeting_state *s = p->node.state;
    const int leader = leader_of(w, p);
    struct world_round *r = round_of(w, leader, s->round);

    if (p->running || (p->starts && s->round <= p->round))
        w->wrong = "a node begins a round twice, or beside another";
    if (w->key.has && (p->key != KEY_OF_RUN || leader < 0))
        w->wrong = "a node without the key takes part";
    if (leader >= 0 && w->launchers[leader].alive &&
        w->launchers[leader].leader.quorum.state.end == END_SUCCESS)
        w->wrong = "a round begins after the run has ended well";
    for (int64_t i = 0; i < s->n && i < WORLD_LAUNCHERS; i++)
        if (r->n && (r->n != s->n || r->tickets[i] != s->members[i].ticket))
            w->wrong = "two members of other lists";
    r->n = (int)s->n;
    for (int i = 0; i < r->n; i++)
        r->tickets[i] = s->members[i].ticket;
    if (r->tickets[rank] != p->node.ticket)
        w->wrong = "a node has another's rank";
    trace(w, "launcher %d begins round %d of leader %d as %d of %d", who, (int)s->round, leader, rank, r->n);
    p->running = true;
    p->stopping = p->stuck = p->bad = false;
    p->round = s->round;
    p->starts++;
    p->ranks_end_ms = WORLD_NEVER;
    p->code = p->unsure = 0;
    p->quiet_ms = p->told_done = 0;
    if (++r->started < r->n || r->broken)
        return;
    for (int i = 0; i < r->n; i++) {
        struct launcher *q = member(w, r, i);
        if (q && !q->bad && !q->stuck)
            q->ranks_end_ms = w->now_ms + w->work_ms + (int64_t)world_draw(w, 300);
    }
}

static void end_ranks(struct world *w, int who)
{
    struct launcher *p = &w->launchers[who];
    struct world_round *r = round_of(w, leader_of(w, p), p->round);
    const bool good = !p->stopping && !p->bad && !p->signal;

    if (p->bad && !p->stopping) {
        const struct meeting_cause cause = {.rank = who,
                                            .pid = 100 + who,
                                            .status = p->code << 8,
                                            .unsure = p->unsure,
                                            .host = "h",
                                            .strength = p->node.state->hung ? STRENGTH_ODD : 0};
        node_failed(&p->node, &cause);
    }
    trace(w, "launcher %d's ranks end, %s", who, good ? "good" : p->stopping ? "stopped" : "bad");
    p->running = false;
    node_ranks_ended(&p->node, good);
    if (!good)
        break_round(w, r);
    else if (++r->good == r->n && !r->broken)
        r->done_ms = w->now_ms;
}

static void gone(struct world *w, int who, bool power)
{
    struct launcher *p = &w->launchers[who];

    p->alive = false;
    p->ended_ms = w->now_ms;
    net_end(w, who, power);
    if (p->running) {
        struct world_round *r = round_of(w, leader_of(w, p), p->round);
        p->running = false;
        break_round(w, r);
    }
}

static int verdict(const struct launcher *p)
{
    const struct meeting_state *s = p->node.state;

    if (p->signal)
        return 128 + p->signal;
    switch (p->node.over.why) {
    case NODE_WHY_ENDED:
        return s->end == END_SUCCESS ? 0 : s->end == END_TIMEOUT ? 138 : 140;
    case NODE_WHY_LOST:
        return 140;
    case NODE_WHY_NOT_REACHED:
    case NODE_WHY_NO_PLACE:
        return 138;
    case NODE_WHY_LEFT:
        return 143;
    case NODE_WHY_NO_KEY:
        return 1;
    }
    return -1;
}

/* A launcher whose node is over ends; with a leader when the others know the end too. */
static void end_if_over(struct world *w, int who)
{
    struct launcher *p = &w->launchers[who];
    const int64_t grace_ms = w->quorum.keep_alive_ms * (w->quorum.keep_alive_attempts + 1);

    if (!node_over(&p->node) || p->running)
        return;
    p->grace_ms = p->grace_ms ? p->grace_ms : w->now_ms + grace_ms;
    if (p->leads && !quorum_over(&p->leader.quorum) && w->now_ms < p->grace_ms)
        return;
    p->exit_code = verdict(p);
    trace(w, "launcher %d ends with %d: why %d, %s (%s)", who, p->exit_code, p->node.over.why,
          p->node.state->why, p->node.line.why);
    gone(w, who, false);
}

static void look_at_ranks(struct world *w, int who)
{
    struct launcher *p = &w->launchers[who];
    struct node *n = &p->node;

    if (node_must_stop(n) && !p->stopping) {
        p->stopping = true;
        p->ranks_end_ms = w->now_ms + (int64_t)world_draw(w, (uint64_t)w->stop_ms);
    }
    const bool stands = p->ranks_end_ms == WORLD_NEVER; /* or waits for ranks that have not begun */
    if (w->progress_ms && stands && !p->quiet_ms)
        p->quiet_ms = w->now_ms + w->progress_ms;
    p->quiet_ms = stands ? p->quiet_ms : 0;
    if (p->quiet_ms && p->told_done != n->state->done) { /* the end of a node is a sign of life */
        p->told_done = n->state->done;
        p->quiet_ms = w->now_ms + w->progress_ms;
        node_quiet(n, false, 0, 0);
    }
    if (p->quiet_ms && w->now_ms >= p->quiet_ms)
        node_quiet(n, true, 0, 0);
    if (n->state->hung && n->state->round == p->round && !p->bad && !p->stopping) {
        p->bad = true;
        p->code = 138;
        p->ranks_end_ms = w->now_ms + 500 + (int64_t)world_draw(w, 2000);
    }
    if (w->now_ms >= p->ranks_end_ms)
        end_ranks(w, who);
}

/* When the node or the leader has something to do, by their own time. */
static int64_t next_ms(const struct world *w, const struct launcher *p)
{
    const int64_t now_ms = world_now(w, p), node = node_next_ms(&p->node, now_ms);
    const int64_t leader = p->leads ? leader_next_ms(&p->leader, now_ms) : WORLD_NEVER;

    return node < leader ? node : leader;
}

static void turn(struct world *w, int who)
{
    struct launcher *p = &w->launchers[who];
    const int64_t before_ms = p->awake.stopped_ms, now_ms = awake_now(&p->awake, w->now_ms);
    int rank;

    p->stepped_ms = w->now_ms;
    node_was_stopped(&p->node, p->awake.stopped_ms - before_ms);
    net_deliver(w, who);
    if (p->leads)
        attack_leader(w, who);
    if (p->node.line.welcomed && leader_of(w, p) < 0)
        w->wrong = "a node follows an attacker";
    if (p->leads)
        leader_decide(&p->leader, now_ms);
    node_step(&p->node, now_ms);
    if (p->running)
        look_at_ranks(w, who);
    node_step(&p->node, now_ms);
    if (!p->signal && node_begins(&p->node, &rank))
        begin_ranks(w, who, rank);
    net_flush(w, who);
    p->awake.due_ms = next_ms(w, p);
    if (p->awake.due_ms >
        now_ms + w->quorum.keep_alive_ms / 2) /* often enough to notice that it was stopped */
        p->awake.due_ms = now_ms + w->quorum.keep_alive_ms / 2;
    if (p->awake.due_ms <= now_ms)
        w->wrong = "a launcher loops without waiting";
    p->lag_ms = (int64_t)world_draw(w, p->late ? SLOW_MS : LAG_MS);
    end_if_over(w, who);
}

static void signal_launcher(struct world *w, struct launcher *p)
{
    if (p->signal)
        return;
    p->signal = 15;
    node_leave(&p->node, 15, world_now(w, p));
    if (p->running && !p->stopping) {
        p->stopping = true;
        p->ranks_end_ms = w->now_ms + (int64_t)world_draw(w, (uint64_t)w->stop_ms);
    }
}

static void happen(struct world *w, const struct world_event *e)
{
    struct launcher *p = &w->launchers[e->who];
    const int64_t until = e->ms == WORLD_NEVER ? WORLD_NEVER : w->now_ms + e->ms;

    trace(w, "event %d at launcher %d for %lld", e->kind, e->who, (long long)e->ms);

    if (e->kind == WORLD_START && !p->started)
        start(w, e->who);
    else if (!p->alive)
        return;
    else if (e->kind == WORLD_KILL || e->kind == WORLD_CRASH)
        gone(w, e->who, e->kind == WORLD_CRASH);
    else if (e->kind == WORLD_TERM)
        signal_launcher(w, p);
    else if (e->kind == WORLD_STOP)
        p->stopped_until_ms = until > p->stopped_until_ms ? until : p->stopped_until_ms;
    else if (e->kind == WORLD_CUT)
        net_cut(w, e->who, until);
    else if (e->kind == WORLD_NARROW)
        p->narrow_until_ms = until;
    else if (e->kind == WORLD_RESET)
        net_reset(w, e->who);
    else if (e->kind == WORLD_FORGET)
        net_forget(w, e->who);
    else if (p->running && !p->stopping) { /* WORLD_FAIL, WORLD_HANG */
        if (e->kind == WORLD_HANG)
            stand_still(w, round_of(w, leader_of(w, p), p->round));
        else {
            p->bad = true;
            p->code = 1;
            p->ranks_end_ms = w->now_ms;
        }
    }
    if (e->kind != WORLD_START && until != WORLD_NEVER && until > w->trouble_ms)
        w->trouble_ms = until;
}

/* When the launcher has something to do. */
static int64_t due_ms(const struct world *w, int who)
{
    const struct launcher *p = &w->launchers[who];
    int64_t due = net_due_ms(w, who), at = next_ms(w, p);

    if (!p->alive || p->stopped_until_ms == WORLD_NEVER)
        return WORLD_NEVER;
    at = (at < p->awake.due_ms ? at : p->awake.due_ms) + p->awake.stopped_ms;
    due = at < due ? at : due;
    if (p->running && p->ranks_end_ms < due)
        due = p->ranks_end_ms;
    if (p->running && p->quiet_ms && p->quiet_ms > w->now_ms && p->quiet_ms < due)
        due = p->quiet_ms;
    due = due < p->stepped_ms ? p->stepped_ms : due;
    due += p->lag_ms;
    return due < p->stopped_until_ms ? p->stopped_until_ms : due < w->now_ms ? w->now_ms : due;
}

static bool all_have_ended(const struct world *w)
{
    for (int i = 0; i < w->n_launchers; i++)
        if (w->launchers[i].alive && w->launchers[i].stopped_until_ms != WORLD_NEVER)
            return false;
    for (int i = 0; i < w->n_events; i++)
        if (w->events[i].kind == WORLD_START && w->events[i].at_ms > w->now_ms &&
            !w->launchers[w->events[i].who].started)
            return false;
    return true;
}

/* A round that ended well in quiet times is the last one, and its members end with 0. */
static void judge_ends(struct world *w)
{
    for (int i = 0; i < w->n_rounds; i++) {
        const struct world_round *r = &w->rounds[i];
        if (!r->done_ms || r->done_ms < w->trouble_ms + CALM_MS)
            continue;
        for (int k = 0; k < w->n_events; k++)
            if (w->events[k].kind != WORLD_START && w->events[k].at_ms + CALM_MS > r->done_ms)
                return;
        for (int k = 0; k < w->n_rounds; k++)
            if (w->rounds[k].leader == r->leader && w->rounds[k].round > r->round)
                w->wrong = "a run that has ended well runs again";
        for (int k = 0; k < w->n_launchers; k++) {
            const struct launcher *p = &w->launchers[k];
            if (p->started && p->round == r->round && p->starts && leader_of(w, p) == r->leader &&
                p->ended_ms >= r->done_ms && p->exit_code != 0)
                w->wrong = "a member of a run that ended well does not end with 0";
        }
    }
}

bool world_run(struct world *w, int64_t limit_ms)
{
    while (!w->wrong && !all_have_ended(w)) {
        int64_t due = WORLD_NEVER, next = WORLD_NEVER;
        int who = -1, event = -1;
        for (int i = 0; i < w->n_launchers; i++)
            if (w->launchers[i].alive && (next = due_ms(w, i)) < due) {
                due = next;
                who = i;
            }
        for (int i = 0; i < w->n_events; i++)
            if (w->events[i].at_ms > w->now_ms - 1 && w->events[i].ms >= 0 && w->events[i].at_ms <= due) {
                due = w->events[i].at_ms;
                event = i;
            }
        if (due == WORLD_NEVER || due > limit_ms) {
            w->wrong = "a launcher lives for ever";
            break;
        }
        w->now_ms = due;
        if (event >= 0) {
            happen(w, &w->events[event]);
            w->events[event].ms = -1; /* it has happened */
        } else
            turn(w, who);
    }
    if (!w->wrong)
        judge_ends(w);
    return !w->wrong;
}

void world_release(struct world *w)
{
    for (int i = 0; i < w->n_launchers; i++) {
        if (w->launchers[i].started)
            node_release(&w->launchers[i].node);
        if (w->launchers[i].leads)
            leader_release(&w->launchers[i].leader);
    }
    net_release(w);
}
