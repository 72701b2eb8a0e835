/* test_leader.c - a leader whose process stands still now and then, as one that is debugged, migrated or starved does. */
#include "rendezvous/leader.h"
#include "rendezvous/store.h"

#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* STOP_MS: longer than the leader waits for its own store, an answer on time included. */
enum { LONG_MS = 60000, STOP_MS = 1500, STOPS = 3 };

static void rest(int64_t ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&pause, NULL);
}

/* All threads of this process. */
static void stand_still(void)
{
    const pid_t me = getpid(), pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        kill(me, SIGSTOP);
        rest(STOP_MS);
        kill(me, SIGCONT);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void say(struct store *s, int64_t ticket, enum node_phase phase)
{
    const struct meeting_node node = {
        .phase = phase, .nproc = 1, .wanted = -1, .port = 1, .beat = phase, .cause = {.rank = -1}};
    cleanup_buf struct buf text = BUF_INIT(STORE_VALUE_BYTES);
    struct err err = {0};
    char key[40];
    int64_t ignored;

    snprintf(key, sizeof(key), "node/%" PRId64, ticket);
    assert_int_equal(meeting_put_node(&node, &text, &err), 0);
    assert_int_equal(store_set(s, key, text.data, text.len, LONG_MS, &err), 0);
    assert_int_equal(store_add(s, "posts", 1, &ignored, LONG_MS, &err), 0);
}

/* Until the leader has said that the run is in this stage. */
static void await(struct store *s, enum meeting_stage stage)
{
    static struct meeting_state state;
    struct err err = {0};

    for (int64_t version = 0; state.stage != (int64_t)stage; version++) {
        cleanup_buf struct buf text = BUF_INIT(STORE_VALUE_BYTES);
        if (store_wait_count(s, "version", version + 1, LONG_MS, &err) < 0 ||
            store_get(s, "state", &text, LONG_MS, &err) < 0 ||
            meeting_get_state(text.data, text.len, &state, &err) < 0)
            fail_msg("stage %d: %s", (int)stage, err.msg);
    }
}

/* Nothing in it ends by itself. */
static const struct quorum_config ONE_NODE = {.min = 1,
                                              .max = 1,
                                              .join_ms = LONG_MS,
                                              .last_call_ms = LONG_MS,
                                              .keep_alive_ms = LONG_MS,
                                              .keep_alive_attempts = 9};

static void test_stops(void **state)
{
    struct err err = {0};
    int64_t ticket;

    (void)state;
    struct leader *c = leader_start(0, "r", &ONE_NODE, &err);
    if (!c)
        fail_msg("%s", err.msg);
    for (int i = 0; i < STOPS; i++)
        stand_still();
    struct store *s = store_connect("127.0.0.1", leader_port(c), "r", LONG_MS, &err);
    assert_non_null(s);
    assert_int_equal(store_add(s, "tickets", 1, &ticket, LONG_MS, &err), 0);
    say(s, ticket, NODE_JOINING);
    await(s, STAGE_RUNNING);
    for (int i = 0; i < STOPS; i++)
        stand_still();
    say(s, ticket, NODE_DONE);
    await(s, STAGE_ENDED);
    assert_false(leader_over(c)); /* the node has not said that it has heard of it */
    store_close(s);
    leader_stop(c);
}

/* What a leader cannot read will not be right the next time either. It does not try for ever: the store goes, and that is noticed. */
static void test_spoiled_store(void **state)
{
    struct err err = {0};

    (void)state;
    struct leader *c = leader_start(0, "r", &ONE_NODE, &err);
    if (!c)
        fail_msg("%s", err.msg);
    struct store *s = store_connect("127.0.0.1", leader_port(c), "r", LONG_MS, &err);
    assert_non_null(s);
    assert_int_equal(store_set(s, "posts", "many", 4, LONG_MS, &err), 0);
    assert_int_equal(store_wait_count(s, "never", 1, LONG_MS, &err), -1);
    assert_int_equal(err.kind, ERR_PEER);
    while (!leader_over(c))
        rest(1);
    store_close(s);
    leader_stop(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_spoiled_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
