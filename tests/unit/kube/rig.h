/* rig.h - a loop and a transport against the fake API server, and waiting for something to become true. */
#ifndef TK_TESTS_UNIT_KUBE_RIG_H
#define TK_TESTS_UNIT_KUBE_RIG_H

#include "kube/client.h"
#include "kube/http.h"
#include "kube/loop.h"
#include "tests/fakes/apiserver.h"

struct rig {
    struct fake_apiserver *server;
    struct kube_loop *loop;
    struct kube_config config;
    struct http *http;
    struct kube_transport api;
    int64_t jumped_ms; /* added to its clock, after rig_setup_jumps */
};

int rig_setup(void **ctx);
int rig_setup_fast(
    void **ctx); /* its clock runs 20 times too fast, so that back-offs do not take their time */
int rig_setup_slow(void **ctx); /* 50 times too slow: what ends after seconds ends never */
int rig_setup_jumps(void **ctx);
int rig_teardown(void **ctx);

/* The configuration for a server at this address, with a token. */
void rig_config(struct kube_config *c, const char *url);

/* Turn the loop until the condition holds, or `done` returns true. Ten minutes without it fail the test: nothing here takes a second of a core. */
#define RIG_UNTIL(loop, condition)                                                                           \
    for (int64_t rig_limit_ms = clock_mono_ms() + 600000; !(condition);)                                     \
    rig_turn(loop, rig_limit_ms)
void rig_turn(struct kube_loop *l, int64_t limit_ms);
void rig_until(struct kube_loop *l, bool (*done)(void *ctx), void *ctx);

/* fake_put, which has to succeed. */
void rig_put(const struct rig *r, const char *path, const char *json);

unsigned rig_server_port(const struct rig *r);

/* The client's ends of the connections that there are, max at most. Returns how many. */
int rig_client_ports(const struct rig *r, unsigned *ret, int max);

/* One request, to its end. */
struct rig_reply {
    bool over;
    cJSON *object;
    bool unreadable;
    char uid[64]; /* of an unreadable one, as far as it was found */

    struct kube_status status;
    struct err err; /* ERR_NONE: it worked */
};
void rig_on_reply(void *ctx, struct kube_reply *reply); /* ctx: a struct rig_reply; all but the object */
bool rig_is_over(void *ctx);                            /* the same */
void rig_call(struct rig *r, const struct kube_request *req, struct rig_reply *reply);
void rig_reply_release(struct rig_reply *reply);

#endif
