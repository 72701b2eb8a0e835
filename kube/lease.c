/* lease.c - the rules of leader election: when to observe, take, renew and release the Lease. */
#include "kube/lease.h"

#include "common/clock.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Upper bound of a duration read from a lease. */
enum { DURATION_MAX_S = 3600 };

struct lease {
    struct lease_options o;
    int64_t renew_deadline_ms, retry_ms;
    uint64_t random;
    enum lease_step step;
    int64_t due_ms;
    bool under_way;
    int64_t sent_ms;
    bool second_try; /* the current write follows a read: if it conflicts, the next read waits */
    cJSON *seen;     /* the lease last read; NULL: it does not exist */
    uint64_t seen_hash;
    int64_t changed_ms; /* when we last saw its spec change */
    bool leader;
    bool in_doubt; /* someone else wrote the lease since our last renewal */
    int64_t renewed_ms;
    bool releasing, over;
};

struct lease *lease_new(const struct lease_options *o)
{
    struct lease *l = memory_must(calloc(1, sizeof(*l)));

    l->o = *o;
    l->renew_deadline_ms = o->duration_ms * LEASE_RENEW_DEADLINE_MS / LEASE_DURATION_MS;
    l->retry_ms = o->duration_ms * LEASE_RETRY_MS / LEASE_DURATION_MS;
    l->random = o->seed;
    l->step = LEASE_READ;
    l->due_ms = INT64_MIN;
    return l;
}

void lease_free(struct lease *l)
{
    if (!l)
        return;
    cJSON_Delete(l->seen);
    free(l);
}

const char *lease_holder(const struct lease *l)
{
    const char *holder = json_str(json_child(l->seen, "spec"), "holderIdentity");

    return holder ? holder : "";
}

bool lease_is_ours(const struct lease *l)
{
    return strcmp(lease_holder(l), l->o.identity) == 0;
}

int64_t lease_held_until_ms(const struct lease *l)
{
    return l->leader ? l->renewed_ms + l->renew_deadline_ms : INT64_MIN;
}

bool lease_is_leader(const struct lease *l, int64_t now_ms)
{
    return l->leader && !l->releasing && now_ms < lease_held_until_ms(l);
}

bool lease_is_held(const struct lease *l, int64_t now_ms)
{
    return lease_is_leader(l, now_ms) && !l->in_doubt;
}

bool lease_is_over(const struct lease *l)
{
    return l->over;
}

/* retry_ms to 1.2 times that, so that candidates do not read at the same moment. */
static int64_t jittered(struct lease *l)
{
    return l->retry_ms + (int64_t)(random_next(&l->random) % (uint64_t)(l->retry_ms / 5 + 1));
}

static void set_step(struct lease *l, enum lease_step step, int64_t due_ms)
{
    l->step = step;
    l->due_ms = due_ms;
}

enum lease_step lease_next(struct lease *l, int64_t now_ms)
{
    if (l->under_way || l->over)
        return LEASE_WAIT;
    if (l->leader && !l->releasing && now_ms >= lease_held_until_ms(l)) {
        l->leader = false;
        set_step(l, LEASE_READ, l->due_ms);
    }
    return now_ms >= l->due_ms ? l->step : LEASE_WAIT;
}

int64_t lease_due_ms(const struct lease *l)
{
    return l->under_way || l->over ? INT64_MAX : l->due_ms;
}

void lease_sent(struct lease *l, int64_t now_ms)
{
    l->under_way = true;
    l->sent_ms = now_ms;
}

/* Lease times have exactly six digits after the point. */
static cJSON *micro_time(int64_t wall_ms)
{
    char text[CLOCK_RFC3339_BYTES];
    char micro[CLOCK_RFC3339_BYTES + 4];

    clock_rfc3339(wall_ms, true, text);
    snprintf(micro, sizeof(micro), "%.*s000Z", (int)strcspn(text, "Z"), text);
    return cJSON_CreateString(micro);
}

static cJSON *new_object(const struct lease *l)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "apiVersion", "coordination.k8s.io/v1");
    cJSON_AddStringToObject(o, "kind", "Lease");
    cJSON *meta = cJSON_AddObjectToObject(o, "metadata");
    cJSON_AddStringToObject(meta, "name", l->o.name);
    cJSON_AddStringToObject(meta, "namespace", l->o.ns);
    return o;
}

const char *lease_body(const struct lease *l, int64_t wall_ms, struct arena *a)
{
    cleanup_json cJSON *o =
        l->step == LEASE_CREATE || !cJSON_IsObject(l->seen) ? new_object(l) : cJSON_Duplicate(l->seen, true);
    cJSON *spec = cJSON_GetObjectItemCaseSensitive(o, "spec");
    bool ours = lease_is_ours(l);
    int64_t transitions = json_i64(spec, "leaseTransitions", 0);

    if (!cJSON_IsObject(spec)) {
        json_set(o, "spec", cJSON_CreateObject());
        spec = cJSON_GetObjectItemCaseSensitive(o, "spec");
    }
    json_set(spec, "holderIdentity", cJSON_CreateString(l->releasing ? "" : l->o.identity));
    json_set(spec, "leaseDurationSeconds",
             cJSON_CreateNumber(l->releasing ? 1 : (double)((l->o.duration_ms + 999) / 1000)));
    json_set(spec, "renewTime", micro_time(wall_ms));
    if (l->step == LEASE_CREATE || l->releasing || !ours || !json_str(spec, "acquireTime"))
        json_set(spec, "acquireTime", micro_time(wall_ms));
    if (l->step == LEASE_CREATE)
        transitions = 0;
    else if (!l->releasing && !ours && transitions < INT32_MAX)
        transitions++;
    json_set(spec, "leaseTransitions", cJSON_CreateNumber((double)transitions));
    return json_print(o, a);
}

static void observe(struct lease *l, const cJSON *object, int64_t now_ms)
{
    const cJSON *spec = json_child(object, "spec");
    uint64_t hash = spec ? json_hash(spec) : 0;

    if (!l->seen || hash != l->seen_hash)
        l->changed_ms = now_ms;
    l->seen_hash = hash;
    cJSON_Delete(l->seen);
    l->seen = memory_must(cJSON_Duplicate(object, true));
}

static bool may_be_taken(const struct lease *l, int64_t now_ms)
{
    int64_t duration_s = json_i64(json_child(l->seen, "spec"), "leaseDurationSeconds", 0);

    if (!lease_holder(l)[0])
        return true;
    if (duration_s > DURATION_MAX_S)
        duration_s = DURATION_MAX_S;
    return now_ms >= l->changed_ms + (duration_s > 0 ? duration_s : 0) * 1000;
}

static void finish(struct lease *l)
{
    l->leader = false;
    l->over = true;
}

static void after_read(struct lease *l, int64_t now_ms)
{
    if (lease_is_ours(l)) {
        l->second_try = true;
        set_step(l, LEASE_WRITE, now_ms);
        return;
    }
    l->leader = false;
    if (l->releasing) {
        finish(l);
    } else if (may_be_taken(l, now_ms)) {
        l->second_try = true;
        set_step(l, LEASE_WRITE, now_ms);
    } else {
        set_step(l, LEASE_READ, now_ms + jittered(l));
    }
}

static void after_write(struct lease *l, int64_t now_ms)
{
    if (!lease_is_ours(l)) { /* we released it, or the server changed our write */
        if (l->releasing)
            finish(l);
        else
            set_step(l, LEASE_READ, now_ms + jittered(l));
        l->leader = false;
        return;
    }
    l->leader = true;
    l->in_doubt = false;
    /* The time of sending: other candidates may have seen the renewal that early. */
    l->renewed_ms = l->sent_ms;
    l->second_try = false;
    set_step(l, LEASE_WRITE, l->releasing ? now_ms : now_ms + l->retry_ms);
}

/* Another candidate wrote the lease first: read it without waiting, but only once. */
static void after_conflict(struct lease *l, int64_t now_ms)
{
    l->in_doubt = true;
    set_step(l, LEASE_READ, l->second_try ? now_ms + jittered(l) : now_ms);
    l->second_try = true;
}

static void after_failure(struct lease *l, const struct kube_status *status, int64_t now_ms)
{
    int64_t wait_ms = jittered(l);

    if (l->releasing) { /* the others wait until the lease expires; nothing else is lost */
        finish(l);
        return;
    }
    /* Honour Retry-After up to a bound: beyond it we would lose the lease, or leave a free one unused. */
    int64_t patience_ms = l->renew_deadline_ms / 2;
    int64_t asked_ms = status->retry_after_ms < patience_ms ? status->retry_after_ms : patience_ms;
    if (asked_ms > wait_ms)
        wait_ms = asked_ms;
    /* A write without an answer may have succeeded: then the next write conflicts, and a read shows the holder. */
    set_step(l, l->leader && l->step == LEASE_WRITE ? LEASE_WRITE : LEASE_READ, now_ms + wait_ms);
}

void lease_answer(struct lease *l, const cJSON *object, const struct kube_status *status, int64_t now_ms)
{
    enum lease_step step = l->step;

    l->under_way = false;
    if (object) {
        observe(l, object, now_ms);
        if (step == LEASE_READ)
            after_read(l, now_ms);
        else
            after_write(l, now_ms);
    } else if (step == LEASE_READ && status->code == 404) {
        cJSON_Delete(TAKE(l->seen));
        if (l->releasing) {
            finish(l);
            return;
        }
        l->second_try = true;
        set_step(l, LEASE_CREATE, now_ms);
    } else if (step != LEASE_READ && (status->code == 409 || status->code == 404)) {
        after_conflict(l, now_ms);
    } else {
        after_failure(l, status, now_ms);
    }
}

void lease_release(struct lease *l, int64_t now_ms)
{
    if (l->releasing)
        return;
    l->releasing = true;
    if (l->under_way) /* a write in flight may succeed: wait for its answer, then release */
        return;
    if (l->seen && lease_is_ours(l))
        set_step(l, LEASE_WRITE, now_ms);
    else
        finish(l);
}
