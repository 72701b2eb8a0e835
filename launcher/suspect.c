/* suspect.c - choose the rank that most likely blocks the others. */
#include "launcher/suspect.h"
#include "common/text.h"

#include <inttypes.h>
#include <stdio.h>

/* A rank that uses more CPU than this runs, perhaps in another thread than its main one. Below it, it
 * sleeps. */
enum { RUNS_PERCENT = 20 };

static bool runs(const struct suspect_rank *r)
{
    return r->state == 'R' || r->cpu_percent >= RUNS_PERCENT; /* R includes waiting for a CPU */
}

/* " (D, nfs_wait)" */
static void add_state(const struct suspect_rank *r, char out[static SUSPECT_BYTES])
{
    if (r->state == 'T' || r->state == 't')
        text_add(out, SUSPECT_BYTES, " (%c)", r->state);
    else if (r->state)
        text_add(out, SUSPECT_BYTES, " (%c%s%s)", r->state, r->wchan[0] ? ", " : "", r->wchan);
}

/* "all_reduce 1234"; the first exchange has no number. */
static void add_call(uint32_t call, uint64_t number, char out[static SUSPECT_BYTES])
{
    text_add(out, SUSPECT_BYTES, "%s", rank_call_name(call));
    if (call != RANK_CALL_OPEN)
        text_add(out, SUSPECT_BYTES, " %" PRIu64, number);
}

/* The ranks of a node, and the last collective call that any rank of the run has begun. */
struct scene {
    const struct suspect_rank *r;
    int n;
    uint64_t reached; /* 0: none is known */
    uint32_t call;
    bool outside; /* several ranks, of which none is in a call */
};

/* Whether it is a waiting rank, which makes no collective call (trainer/run/idle.h): other ranks begin one
 * before they receive. */
static bool is_idle(const struct suspect_rank *r)
{
    return !r->slot.begun && r->slot.call == RANK_CALL_RECV;
}

static bool is_outside(const struct suspect_rank *r)
{
    return r->slot.ended >= r->slot.begun && r->slot.call == RANK_CALL_NONE;
}

static struct scene look_around(const struct suspect_rank *r, int n, uint64_t reached, uint32_t call)
{
    struct scene s = {.r = r, .n = n, .reached = reached, .call = call, .outside = n > 1};

    for (int i = 0; i < n; i++) {
        s.outside = s.outside && is_outside(&r[i]);
        if (r[i].slot.begun > s.reached) {
            s.reached = r[i].slot.begun;
            s.call = r[i].slot.last;
        }
    }
    return s;
}

static bool is_elsewhere(const struct suspect_rank *r)
{
    return r->stack.known && !r->stack.waits;
}

/* How many ranks are at the same code line as r. */
static int same_suspects(const struct scene *s, const struct suspect_rank *r)
{
    int many = 0;

    for (int i = 0; i < s->n; i++)
        many += is_elsewhere(&s->r[i]) && s->r[i].stack.place == r->stack.place;
    return many;
}

static enum meeting_strength strength_of(const struct scene *s, const struct suspect_rank *r)
{
    if (r->state == 'T' || r->state == 't')
        return STRENGTH_STOPPED;
    if (r->state == 'D')
        return STRENGTH_DISK;
    if (r->slot.begun < s->reached && !is_idle(r))
        return STRENGTH_BEHIND;
    if (s->reached && !s->outside)
        return is_outside(r) ? STRENGTH_ODD : STRENGTH_UNKNOWN;
    return is_elsewhere(r) ? STRENGTH_STACK : STRENGTH_UNKNOWN;
}

/* Whether the evidence against a is stronger than against b: the strength is higher, a began fewer calls, a's
 * code line is rarer, or a sleeps (a rank that waits for a GPU uses the CPU). */
static bool is_worse(const struct scene *s, const struct suspect_rank *a, const struct suspect_rank *b)
{
    const enum meeting_strength strength = strength_of(s, a), other = strength_of(s, b);

    if (strength != other)
        return strength > other;
    if (strength == STRENGTH_BEHIND)
        return a->slot.begun < b->slot.begun;
    if (strength != STRENGTH_STACK)
        return false;
    const int many = same_suspects(s, a), others = same_suspects(s, b);
    return many != others ? many < others : runs(b) && !runs(a);
}

static void say_behind(const struct scene *s, const struct suspect_rank *r, char out[static SUSPECT_BYTES])
{
    text_add(out, SUSPECT_BYTES, "rank %d %s ", r->rank, r->ended ? "ended before" : "did not reach");
    add_call(s->call, s->reached, out);
}

/* Write the reason for the strongest evidence. */
static void say_why(const struct scene *s, const struct suspect_rank *r, enum meeting_strength strength,
                    char out[static SUSPECT_BYTES])
{
    if (strength == STRENGTH_STOPPED) {
        text_add(out, SUSPECT_BYTES, "rank %d is stopped%s", r->rank,
                 r->state == 't' ? " by a debugger" : "");
    } else if (strength == STRENGTH_BEHIND || (strength == STRENGTH_DISK && r->slot.begun < s->reached)) {
        say_behind(s, r, out);
    } else if (strength == STRENGTH_DISK) {
        text_add(out, SUSPECT_BYTES, "rank %d is in uninterruptible sleep", r->rank);
    } else if (strength == STRENGTH_ODD) {
        text_add(out, SUSPECT_BYTES, "rank %d goes no further after ", r->rank);
        add_call(s->call, s->reached, out);
    } else {
        text_add(out, SUSPECT_BYTES, "rank %d %s %s", r->rank, runs(r) ? "loops in" : "is in", r->stack.at);
    }
    if (strength != STRENGTH_STACK || !runs(r))
        add_state(r, out);
}

/* No rank differs from the others: write that, and return the rank to name as an example. */
static int say_unknown(const struct scene *s, char out[static SUSPECT_BYTES])
{
    const struct suspect_rank *r = s->r;
    int known = 0;

    if (s->reached && !s->outside) {
        text_add(out, SUSPECT_BYTES, "all ranks wait");
        if (r->slot.ended >= r->slot.begun)
            text_add(out, SUSPECT_BYTES, ", rank %d in %s after ", r->rank, rank_call_name(r->slot.call));
        else
            text_add(out, SUSPECT_BYTES, " in ");
        add_call(s->call, s->reached, out);
        text_add(out, SUSPECT_BYTES, ": a connection between them is lost?");
        return 0;
    }
    while (known < s->n && !r[known].stack.known)
        known++;
    if (known < s->n) {
        text_add(out, SUSPECT_BYTES,
                 "all ranks wait for each other, rank %d in %s: a connection between them is lost?",
                 r[known].rank, r[known].stack.at);
        return known;
    }
    text_add(out, SUSPECT_BYTES, "cannot tell which rank: rank %d %s", r->rank,
             r->ended  ? "has ended"
             : runs(r) ? "runs"
                       : "sleeps");
    if (!r->ended)
        add_state(r, out);
    return 0;
}

struct suspect suspect_find(const struct suspect_rank *r, int n, uint64_t reached, uint32_t call)
{
    const struct scene scene = look_around(r, n, reached, call);
    struct suspect s = {.index = 0};

    for (int i = 1; i < n; i++)
        if (is_worse(&scene, &r[i], &r[s.index]))
            s.index = i;
    s.strength = strength_of(&scene, &r[s.index]);
    if (s.strength == STRENGTH_STACK) {
        s.place = r[s.index].stack.place;
        if (n > 1 && same_suspects(&scene, &r[s.index]) == n) {
            s.strength = STRENGTH_UNKNOWN;
            text_add(s.text, SUSPECT_BYTES, "cannot tell which rank: all are there, ");
        }
        say_why(&scene, &r[s.index], STRENGTH_STACK, s.text);
    } else if (s.strength != STRENGTH_UNKNOWN) {
        say_why(&scene, &r[s.index], s.strength, s.text);
    } else {
        s.index = say_unknown(&scene, s.text);
    }
    const uint64_t begun = r[s.index].slot.begun;
    s.number = begun < INT64_MAX / 2 ? (int64_t)begun : INT64_MAX / 2;
    return s;
}

void suspect_describe(const struct suspect_rank *r, char out[static SUSPECT_BYTES])
{
    static const char *const phases[RANK_PHASES] = {
        [RANK_STARTING] = "starting",
        [RANK_TRAINING] = "training",
        [RANK_VALIDATING] = "validating",
        [RANK_SAVING] = "saving",
    };

    snprintf(out, SUSPECT_BYTES, "rank %d (pid %d):", r->rank, r->pid);
    if (r->ended)
        text_add(out, SUSPECT_BYTES, " has ended");
    else if (r->state)
        text_add(out, SUSPECT_BYTES, " %c%s%s", r->state, r->wchan[0] ? ", " : "", r->wchan);
    else
        text_add(out, SUSPECT_BYTES, " not found in /proc");
    if (r->cpu_percent >= 0)
        text_add(out, SUSPECT_BYTES, "; CPU %d%%", r->cpu_percent);
    if (r->slot.phase < RANK_PHASES && phases[r->slot.phase])
        text_add(out, SUSPECT_BYTES, "; %s", phases[r->slot.phase]);
    if (r->slot.begun) {
        text_add(out, SUSPECT_BYTES, "; %s ", r->slot.ended < r->slot.begun ? "in" : "after");
        add_call(r->slot.last, r->slot.begun, out);
    }
    if (r->slot.ended >= r->slot.begun && r->slot.call != RANK_CALL_NONE)
        text_add(out, SUSPECT_BYTES, "; in %s", rank_call_name(r->slot.call));
    if (r->last_line[0])
        text_add(out, SUSPECT_BYTES, "; last line: %s", r->last_line);
}
