/* fuzz_lease.c - an API server's answers about the lease, separated by zero bytes: an operator leads only with a lease that
 * has its name, and no longer than the lease allows, and it always has a next step. Byte 0: the time between two answers. */
#include "fuzz.h"

#include "common/json.h"
#include "kube/lease.h"

#include <string.h>

enum { ANSWERS_MAX = 32 };

struct server {
    const char *text;
    size_t len;
};

/* The next answer: an object, or a status when it is none. */
static cJSON *next(struct server *s, struct kube_status *status)
{
    struct err err;
    const char *end = memchr(s->text, '\0', s->len);
    const size_t n = end ? (size_t)(end - s->text) : s->len;
    cJSON *object = json_parse(s->text, n, &err);

    *status = (struct kube_status){.retry_after_ms = n ? s->text[0] * 100 : -1};
    if (!object)
        status->code = n && s->text[0] == '4' ? 404 : n && s->text[0] == '9' ? 409 : n ? 500 : 0;
    s->text += end ? n + 1 : n;
    s->len -= end ? n + 1 : n;
    return object;
}

static void write_one(const struct lease *l, int64_t now_ms)
{
    cleanup_arena struct arena a = {0};
    struct err err;
    const char *body = lease_body(l, INT64_C(1767225600000) + now_ms, &a);

    cleanup_json cJSON *o = json_parse(body, strlen(body), &err);
    MUST(o && strcmp(json_str(json_child(o, "spec"), "holderIdentity"), "us") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lease_options options = {
        .ns = "ns", .name = "op", .identity = "us", .duration_ms = LEASE_DURATION_MS, .seed = 7};
    struct kube_status status;
    int64_t now_ms = 1000;

    if (size < 1 || size > 65536)
        return 0;
    struct server server = {(const char *)data + 1, size - 1};
    struct lease *l = lease_new(&options);
    for (int i = 0; i < ANSWERS_MAX && server.len; i++) {
        const int64_t due_ms = lease_due_ms(l);
        MUST(due_ms <= now_ms + 3600 * 1000);
        now_ms = (due_ms > now_ms ? due_ms : now_ms) + data[0] % 8 * 500;
        const enum lease_step step = lease_next(l, now_ms);
        MUST(step != LEASE_WAIT);
        if (step != LEASE_READ)
            write_one(l, now_ms);
        lease_sent(l, now_ms);
        const int64_t sent_ms = now_ms;
        cleanup_json cJSON *object = next(&server, &status);
        lease_answer(l, object, &status, now_ms += data[0] / 8 * 100);
        if (object && lease_is_leader(l, now_ms))
            MUST(lease_is_ours(l) && now_ms < sent_ms + LEASE_RENEW_DEADLINE_MS);
        MUST(!lease_is_held(l, lease_held_until_ms(l)) &&
             (!lease_is_held(l, now_ms) || lease_is_leader(l, now_ms)));
    }
    lease_free(l);
    return 0;
}
