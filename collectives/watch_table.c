/* watch_table.c - the watch's actions on messages: register ranks, forward failures, answer which ranks are
 * missing. */
#include "collectives/watch_table.h"
#include "common/clock.h"
#include "common/contract.h"
#include "common/random.h"
#include "common/secret.h"

#include <stdio.h>
#include <string.h>

enum {
    GRACE_MS = 200, /* before the watch answers a query: time for reports, which waiting ranks send every
                    * HOST_SLICE_MS (100 ms) */
    NAMED_MAX = 8,  /* ranks listed by number in an answer; the others are counted */
};

static const char NO_KEY_HERE[] =
    "rank 0 has the key of the job, and this process has none (" CONTRACT_ENV_JOB_KEY ")",
                  NO_KEY_THERE[] =
                      "this process has a key of the job, and rank 0 has none (" CONTRACT_ENV_JOB_KEY ")";

static void say_all(struct watch_table *s, const struct watch_head *head, const void *body, int but)
{
    for (int r = 0; r < s->world; r++)
        if (r != but && s->by_rank[r])
            watch_slot_say(s->by_rank[r], head, body);
}

static void refuse(struct watch_slot *t, enum err_kind kind, const char *why)
{
    const struct watch_head head = {.type = WATCH_REFUSED, .kind = kind, .len = (uint32_t)strlen(why)};

    watch_slot_say(t, &head, why);
    t->left = true;
}

static void take_rank(struct watch_table *s, struct watch_slot *t)
{
    const struct watch_register *r = &t->first.body;
    const uint32_t rank = t->first.head.rank;
    char why[WATCH_TEXT_BYTES];

    if (s->gone) {
        refuse(t, ERR_TRANSIENT, "the run has begun without this process");
    } else if (r->world != (uint32_t)s->world || rank >= r->world) {
        snprintf(why, sizeof(why), "WORLD_SIZE=%u on rank %u, but %d on rank 0: expected the same everywhere",
                 r->world, rank, s->world);
        refuse(t, ERR_INVALID, why);
    } else if (s->by_rank[rank]) {
        snprintf(why, sizeof(why), "two processes are rank %u of this run", rank);
        refuse(t, ERR_CONFLICT, why);
    } else {
        t->rank = (int)rank;
        s->by_rank[t->rank] = t;
        s->n_registered++;
        s->go->members[t->rank] = r->member;
        memcpy(s->go->members[t->rank].addr, t->addr, sizeof(t->addr));
    }
}

/* Register a waiting rank. */
static void take_awaiting(struct watch_table *s, struct watch_slot *t)
{
    int n = 0;

    for (int i = 0; i < s->n_slots; i++)
        n += s->slots[i]->awaits;
    if (n >= s->n_awaiting) {
        refuse(t, ERR_CONFLICT, "more ranks wait for the end of the run than rank 0 knows of");
        return;
    }
    t->awaits = true;
    watch_slot_say(t, &(struct watch_head){.type = WATCH_AWAITED, .seq = (uint64_t)s->restart_count}, NULL);
}

static void take(struct watch_table *s, struct watch_slot *t)
{
    if (t->first.head.type == WATCH_AWAIT)
        take_awaiting(s, t);
    else
        take_rank(s, t);
}

static void challenge(const struct watch_table *s, struct watch_slot *t)
{
    const struct watch_head out = {.type = WATCH_CHALLENGE, .len = sizeof(struct watch_challenge)};
    struct watch_challenge c;

    t->challenged = true;
    random_fill(t->nonce, sizeof(t->nonce));
    memcpy(c.nonce, t->nonce, sizeof(c.nonce));
    pass_prove(&s->pass, PASS_WATCH, &t->first, sizeof(t->first), t->nonce, c.proof);
    watch_slot_say(t, &out, &c);
}

/* Register the slot after its proof. False: the proof is wrong. */
static bool take_proof(struct watch_table *s, struct watch_slot *t, const struct watch_head *head,
                       const void *body)
{
    if (t->left || head->type != WATCH_PROOF || head->len != JOBKEY_PROOF_BYTES ||
        !pass_holds(&s->pass, PASS_RANK, &t->first, sizeof(t->first), t->nonce, body))
        return false;
    t->challenged = false;
    take(s, t);
    return true;
}

/* The first message of a connection: register its rank, challenge it, or send WATCH_REFUSED. False: it is not from this
 * program. */
static bool take_first(struct watch_table *s, struct watch_slot *t, const struct watch_head *head,
                       const void *body)
{
    struct watch_register *r = &t->first.body;

    if (t->left || (head->type != WATCH_REGISTER && head->type != WATCH_AWAIT) || head->len != sizeof(*r))
        return false;
    t->first.head = *head;
    memcpy(r, body, sizeof(*r));
    if (r->magic != WATCH_MAGIC)
        return false;
    if (r->version != WATCH_VERSION)
        refuse(t, ERR_CONFLICT, "rank 0 runs another version of this program");
    else if (!secret_equal(r->run_id, s->pass.run_id, sizeof(r->run_id)))
        refuse(t, ERR_INVALID, "rank 0 belongs to another run (the run ids differ)");
    else if (!r->has_key != !s->pass.key.has)
        refuse(t, ERR_INVALID, s->pass.key.has ? NO_KEY_HERE : NO_KEY_THERE);
    else if (s->pass.key.has)
        challenge(s, t);
    else
        take(s, t);
    return true;
}

void watch_table_go(struct watch_table *s)
{
    const size_t len = sizeof(*s->go) + (size_t)s->world * sizeof(*s->go->members);
    const struct watch_head head = {.type = WATCH_GO, .len = (uint32_t)len};

    if (s->gone || s->n_registered < s->world)
        return;
    s->gone = true;
    say_all(s, &head, s->go, -1);
}

void watch_table_end(struct watch_table *s, int exit_code)
{
    const struct watch_head head = {.type = WATCH_END, .kind = (uint32_t)exit_code};

    for (int i = 0; i < s->n_slots; i++)
        if (s->slots[i]->awaits && !s->slots[i]->left) {
            s->slots[i]->left = true;
            watch_slot_say(s->slots[i], &head, NULL);
        }
}

/* "3, 5 and 2 more": the ranks that have not reported call t->query (0: that have not registered). */
void watch_table_answer(struct watch_table *s, struct watch_slot *t)
{
    char text[WATCH_TEXT_BYTES] = "";
    size_t at = 0;
    int n = 0;

    for (int r = 0; r < s->world; r++) {
        if (r == t->rank || (t->query ? s->reported[r] >= t->query : s->by_rank[r] != NULL))
            continue;
        if (++n <= NAMED_MAX)
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%d", n > 1 ? ", " : "", r);
    }
    if (n > NAMED_MAX)
        snprintf(text + at, sizeof(text) - at, " and %d more", n - NAMED_MAX);
    const struct watch_head head = {.type = WATCH_ANSWER, .seq = t->query, .len = (uint32_t)strlen(text)};
    watch_slot_say(t, &head, text);
    t->answer_ms = 0;
}

static void tell_once(struct watch_table *s, struct watch_head head, const void *body, int rank)
{
    if (s->lost_or_failed || !s->gone)
        return;
    s->lost_or_failed = true;
    head.rank = (uint32_t)rank;
    say_all(s, &head, body, rank);
}

bool watch_table_hear(struct watch_table *s, struct watch_slot *t, const struct watch_head *head,
                      const void *body)
{
    if (watch_slot_unknown(t))
        return t->challenged ? take_proof(s, t, head, body) : take_first(s, t, head, body);
    if (t->awaits)
        return false; /* a waiting rank sends nothing else */
    struct watch_head out = *head;
    switch ((enum watch_type)head->type) {
    case WATCH_REPORT:
        s->reported[t->rank] = head->seq;
        return true;
    case WATCH_QUERY:
        say_all(s, &(struct watch_head){.type = WATCH_QUERY}, NULL,
                t->rank); /* ranks that have reported already do not answer */
        t->query = head->seq;
        t->answer_ms = clock_mono_ms() + GRACE_MS;
        return true;
    case WATCH_LEAVE:
        t->left = true;
        s->reported[t->rank] = head->seq;
        out.rank = (uint32_t)t->rank;
        out.len = 0;
        say_all(s, &out, NULL, t->rank);
        return true;
    case WATCH_FAIL:
        out.len = out.len < WATCH_TEXT_BYTES ? out.len : WATCH_TEXT_BYTES - 1;
        tell_once(s, out, body, t->rank);
        return true;
    case WATCH_REGISTER:
    case WATCH_REFUSED:
    case WATCH_GO:
    case WATCH_ANSWER:
    case WATCH_LOST:
    case WATCH_AWAIT:
    case WATCH_AWAITED:
    case WATCH_END:
    case WATCH_CHALLENGE:
    case WATCH_PROOF:
        break;
    }
    return false;
}

/* A rank that disconnects before all have registered can be replaced; later its loss is reported to all. */
void watch_table_drop(struct watch_table *s, int i)
{
    struct watch_slot *t = s->slots[i];

    if (t->awaits)
        s->n_awaiting--;
    else if (t->rank >= 0) {
        s->by_rank[t->rank] = NULL;
        if (!s->gone) {
            s->n_registered--;
            s->reported[t->rank] = 0;
        } else if (!t->left)
            tell_once(s, (struct watch_head){.type = WATCH_LOST}, NULL, t->rank);
    }
    watch_slot_free(t);
    s->slots[i] = s->slots[--s->n_slots];
}

bool watch_table_owes(const struct watch_table *s)
{
    for (int i = 0; i < s->n_slots; i++)
        if (s->slots[i]->out.len && s->slots[i]->rank >= 0)
            return true;
    return false;
}
