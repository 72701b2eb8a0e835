/* suspect.c - judge which rank holds up the others. */
#include "launcher/suspect.h"
#include "common/cleanup.h"
#include "common/text.h"
#include "host/rank_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A rank that takes more of a CPU runs, also by another thread than its main one; others sleep, but for a moment now and then. */
enum { RUNS_PERCENT = 20 };

static bool runs(const struct suspect_rank *r)
{
    return r->state == 'R' || r->cpu_percent >= RUNS_PERCENT; /* R also where it waits for a CPU */
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

static struct suspect name(const struct suspect_rank *r, int i, enum meeting_strength strength)
{
    return (struct suspect){.index = i,
                            .strength = strength,
                            .number = r[i].begun < INT64_MAX / 2 ? (int64_t)r[i].begun : INT64_MAX / 2};
}

static bool by_state(const struct suspect_rank *r, int n, const char *states, const char *how,
                     enum meeting_strength strength, struct suspect *ret)
{
    for (int i = 0; i < n; i++)
        if (r[i].state && strchr(states, r[i].state)) {
            *ret = name(r, i, strength);
            text_add(ret->text, SUSPECT_BYTES, "rank %d is %s", r[i].rank, how);
            add_state(&r[i], ret->text);
            return true;
        }
    return false;
}

/* It waits for the end of the run, and takes part in no call (trainer/run/idle.h): who does has begun one before it receives. */
static bool is_idle(const struct suspect_rank *r)
{
    return !r->begun && r->call == RANK_CALL_RECV;
}

/* The rank that began the fewest calls. */
static int slowest(const struct suspect_rank *r, int n)
{
    int least = 0;

    for (int i = 1; i < n; i++)
        if (!is_idle(&r[i]) && (is_idle(&r[least]) || r[i].begun < r[least].begun))
            least = i;
    return least;
}

/* One in uninterruptible sleep that is behind as well says both. */
static bool by_disk(const struct suspect_rank *r, int n, uint64_t reached, uint32_t call, struct suspect *ret)
{
    if (!by_state(r, n, "D", "in uninterruptible sleep", STRENGTH_DISK, ret))
        return false;
    const struct suspect_rank *w = &r[ret->index];
    if (w->begun >= reached)
        return true;
    ret->text[0] = '\0';
    text_add(ret->text, SUSPECT_BYTES, "rank %d did not reach ", w->rank);
    add_call(call, reached, ret->text);
    add_state(w, ret->text);
    return true;
}

static bool by_call(const struct suspect_rank *r, int n, uint64_t reached, uint32_t call, struct suspect *ret)
{
    const int i = slowest(r, n);

    if (is_idle(&r[i]) || r[i].begun >= reached)
        return false;
    *ret = name(r, i, STRENGTH_BEHIND);
    text_add(ret->text, SUSPECT_BYTES, "rank %d %s ", r[i].rank,
             r[i].ended ? "ended before" : "did not reach");
    add_call(call, reached, ret->text);
    add_state(&r[i], ret->text);
    return true;
}

/* All ranks have begun the last call: blame one that is in no call any more, unless all are so, else the connection. */
static bool by_last_call(const struct suspect_rank *r, int n, uint64_t reached, uint32_t call,
                         struct suspect *ret)
{
    int out = -1, outside = 0;

    if (!reached)
        return false;
    for (int i = n - 1; i >= 0; i--)
        if (r[i].finished >= r[i].begun && r[i].call == RANK_CALL_NONE) {
            out = i;
            outside++;
        }
    if (outside == n && n > 1)
        return false;
    *ret = name(r, out < 0 ? 0 : out, out < 0 ? STRENGTH_UNKNOWN : STRENGTH_ODD);
    if (out < 0 && r[0].finished < r[0].begun)
        text_add(ret->text, SUSPECT_BYTES, "all ranks wait in ");
    else if (out < 0)
        text_add(ret->text, SUSPECT_BYTES, "all ranks wait, rank %d in %s after ", r[0].rank,
                 rank_call_name(r[0].call));
    else
        text_add(ret->text, SUSPECT_BYTES, "rank %d goes no further after ", r[out].rank);
    add_call(call, reached, ret->text);
    if (out < 0)
        text_add(ret->text, SUSPECT_BYTES, ": a connection between them is lost?");
    else
        add_state(&r[out], ret->text);
    return true;
}

static bool is_elsewhere(const struct suspect_rank *r)
{
    return r->stack.known && !r->stack.waits;
}

static int company(const struct suspect_rank *r, int n, int64_t place)
{
    int many = 0;

    for (int i = 0; i < n; i++)
        many += is_elsewhere(&r[i]) && r[i].stack.place == place;
    return many;
}

/* Of those in the rarest place the first that sleeps: where ranks wait for a GPU they run. */
static int loneliest(const struct suspect_rank *r, int n)
{
    int best = -1, best_company = 0;

    for (int i = 0; i < n; i++) {
        if (!is_elsewhere(&r[i]))
            continue;
        const int many = company(r, n, r[i].stack.place);
        if (best < 0 || many < best_company || (many == best_company && runs(&r[best]) && !runs(&r[i]))) {
            best = i;
            best_company = many;
        }
    }
    return best;
}

static void add_place(const struct suspect_rank *r, char out[static SUSPECT_BYTES])
{
    text_add(out, SUSPECT_BYTES, "rank %d %s %s", r->rank, runs(r) ? "loops in" : "is in", r->stack.at);
    if (!runs(r))
        add_state(r, out);
}

static bool by_stack(const struct suspect_rank *r, int n, struct suspect *ret)
{
    int known = 0, i = loneliest(r, n);

    for (int k = 0; k < n; k++)
        known += r[k].stack.known;
    if (!known)
        return false;
    if (i < 0) {
        for (i = 0; !r[i].stack.known; i++)
            ;
        *ret = name(r, i, STRENGTH_UNKNOWN);
        text_add(ret->text, SUSPECT_BYTES,
                 "all ranks wait for each other, rank %d in %s: a connection between them is lost?",
                 r[i].rank, r[i].stack.at);
        return true;
    }
    const bool all = n > 1 && company(r, n, r[i].stack.place) == n;
    *ret = name(r, i, all ? STRENGTH_UNKNOWN : STRENGTH_STACK);
    ret->place = r[i].stack.place;
    if (all)
        text_add(ret->text, SUSPECT_BYTES, "cannot tell which rank: all are there, ");
    add_place(&r[i], ret->text);
    return true;
}

/* Nothing tells who waits for whom. */
static struct suspect by_looks(const struct suspect_rank *r)
{
    struct suspect s = name(r, 0, STRENGTH_UNKNOWN);

    text_add(s.text, SUSPECT_BYTES, "cannot tell which rank: rank %d %s", r->rank,
             r->ended  ? "has ended"
             : runs(r) ? "runs"
                       : "sleeps");
    if (!r->ended)
        add_state(r, s.text);
    return s;
}

/* Nobody is set apart, but the network sets two nodes apart. */
static void by_network(const struct suspect_rank *r, int n, struct suspect *ret)
{
    int i = 0;

    while (i < n && !r[i].peer[0])
        i++;
    if (i == n)
        return;
    *ret = name(r, i, STRENGTH_UNANSWERED);
    text_add(ret->text, SUSPECT_BYTES, "rank %d gets no answer from %s", r[i].rank, r[i].peer);
    if (r[i].begun) {
        text_add(ret->text, SUSPECT_BYTES, " in ");
        add_call(r[i].last, r[i].begun, ret->text);
    }
    text_add(ret->text, SUSPECT_BYTES, ": the network between them is cut?");
}

struct suspect suspect_find(const struct suspect_rank *r, int n, uint64_t reached, uint32_t call)
{
    struct suspect s;

    for (int i = 0; i < n; i++)
        if (r[i].begun > reached) {
            reached = r[i].begun;
            call = r[i].last;
        }
    if (!by_state(r, n, "T", "stopped", STRENGTH_STOPPED, &s) &&
        !by_state(r, n, "t", "stopped by a debugger", STRENGTH_STOPPED, &s) &&
        !by_disk(r, n, reached, call, &s) && !by_call(r, n, reached, call, &s) &&
        !by_last_call(r, n, reached, call, &s) && !by_stack(r, n, &s))
        s = by_looks(r);
    if (s.strength == STRENGTH_UNKNOWN)
        by_network(r, n, &s);
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
    if (r->phase < RANK_PHASES && phases[r->phase])
        text_add(out, SUSPECT_BYTES, "; %s", phases[r->phase]);
    if (r->begun) {
        text_add(out, SUSPECT_BYTES, "; %s ", r->finished < r->begun ? "in" : "after");
        add_call(r->last, r->begun, out);
    }
    if (r->finished >= r->begun && r->call != RANK_CALL_NONE)
        text_add(out, SUSPECT_BYTES, "; in %s", rank_call_name(r->call));
    if (r->peer[0])
        text_add(out, SUSPECT_BYTES, "; no answer from %s", r->peer);
    if (r->last_line[0])
        text_add(out, SUSPECT_BYTES, "; last line: %s", r->last_line);
}
