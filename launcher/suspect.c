/* suspect.c - judge which rank holds up the others. */
#include "launcher/suspect.h"
#include "common/cleanup.h"
#include "common/text.h"
#include "host/rank_state.h"

#include <inttypes.h>
#include <stdarg.h>
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

/* Blame rank r[i], in words that the caller may go on with. */
__attribute__((format(printf, 4, 5))) static struct suspect
blame(const struct suspect_rank *r, int i, enum meeting_strength strength, const char *fmt, ...)
{
    struct suspect s = {.index = i,
                        .strength = strength,
                        .number = r[i].begun < INT64_MAX / 2 ? (int64_t)r[i].begun : INT64_MAX / 2};
    va_list args;

    va_start(args, fmt);
    vsnprintf(s.text, sizeof(s.text), fmt, args);
    va_end(args);
    return s;
}

static bool by_state(const struct suspect_rank *r, int n, char state, const char *how,
                     enum meeting_strength strength, struct suspect *ret)
{
    for (int i = 0; i < n; i++)
        if (r[i].state == state) {
            *ret = blame(r, i, strength, "rank %d is %s", r[i].rank, how);
            add_state(&r[i], ret->text);
            return true;
        }
    return false;
}

static struct suspect behind(const struct suspect_rank *r, int i, enum meeting_strength strength,
                             uint64_t reached, uint32_t call)
{
    struct suspect s =
        blame(r, i, strength, "rank %d %s ", r[i].rank, r[i].ended ? "ended before" : "did not reach");

    add_call(call, reached, s.text);
    add_state(&r[i], s.text);
    return s;
}

/* It waits for the end of the run, and takes part in no call (trainer/run/idle.h): who does has begun one before it receives. */
static bool is_idle(const struct suspect_rank *r)
{
    return !r->begun && r->call == RANK_CALL_RECV;
}

/* One in uninterruptible sleep that is behind as well says both. */
static bool by_disk(const struct suspect_rank *r, int n, uint64_t reached, uint32_t call, struct suspect *ret)
{
    if (!by_state(r, n, 'D', "in uninterruptible sleep", STRENGTH_DISK, ret))
        return false;
    if (r[ret->index].begun < reached)
        *ret = behind(r, ret->index, STRENGTH_DISK, reached, call);
    return true;
}

/* The rank that began the fewest calls. */
static bool by_call(const struct suspect_rank *r, int n, uint64_t reached, uint32_t call, struct suspect *ret)
{
    int least = 0;

    for (int i = 1; i < n; i++)
        if (!is_idle(&r[i]) && (is_idle(&r[least]) || r[i].begun < r[least].begun))
            least = i;
    if (is_idle(&r[least]) || r[least].begun >= reached)
        return false;
    *ret = behind(r, least, STRENGTH_BEHIND, reached, call);
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
    if (out >= 0)
        *ret = blame(r, out, STRENGTH_ODD, "rank %d goes no further after ", r[out].rank);
    else if (r[0].finished < r[0].begun)
        *ret = blame(r, 0, STRENGTH_UNKNOWN, "all ranks wait in ");
    else
        *ret = blame(r, 0, STRENGTH_UNKNOWN, "all ranks wait, rank %d in %s after ", r[0].rank,
                     rank_call_name(r[0].call));
    add_call(call, reached, ret->text);
    if (out >= 0)
        add_state(&r[out], ret->text);
    else
        text_add(ret->text, SUSPECT_BYTES, ": a connection between them is lost?");
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

static bool by_stack(const struct suspect_rank *r, int n, struct suspect *ret)
{
    int known = 0, i = loneliest(r, n);

    while (known < n && !r[known].stack.known)
        known++;
    if (known == n)
        return false;
    if (i < 0) {
        *ret = blame(r, known, STRENGTH_UNKNOWN,
                     "all ranks wait for each other, rank %d in %s: a connection between them is lost?",
                     r[known].rank, r[known].stack.at);
        return true;
    }
    const bool all = n > 1 && company(r, n, r[i].stack.place) == n;
    *ret = blame(r, i, all ? STRENGTH_UNKNOWN : STRENGTH_STACK, "%srank %d %s %s",
                 all ? "cannot tell which rank: all are there, " : "", r[i].rank,
                 runs(&r[i]) ? "loops in" : "is in", r[i].stack.at);
    ret->place = r[i].stack.place;
    if (!runs(&r[i]))
        add_state(&r[i], ret->text);
    return true;
}

/* Nothing tells who waits for whom. */
static struct suspect by_looks(const struct suspect_rank *r)
{
    struct suspect s = blame(r, 0, STRENGTH_UNKNOWN, "cannot tell which rank: rank %d %s", r->rank,
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
    *ret = blame(r, i, STRENGTH_UNANSWERED, "rank %d gets no answer from %s%s", r[i].rank, r[i].peer,
                 r[i].begun ? " in " : "");
    if (r[i].begun)
        add_call(r[i].last, r[i].begun, ret->text);
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
    if (!by_state(r, n, 'T', "stopped", STRENGTH_STOPPED, &s) &&
        !by_state(r, n, 't', "stopped by a debugger", STRENGTH_STOPPED, &s) &&
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
