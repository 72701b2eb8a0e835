/* test_meeting.c - words of nodes and leader: out and in again, and nothing but what was written. */
#include "rendezvous/meeting.h"
#include "rendezvous/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct meeting_node a_node(void)
{
    struct meeting_node n = {
        .phase = NODE_FAILED, .round = 3, .beat = 1LL << 40, .nproc = 8, .wanted = -1, .port = 65535};

    strcpy(n.addr, "fd00::1");
    strcpy(n.role, "parameter\nserver");
    n.cause = (struct meeting_cause){.rank = 11,
                                     .local_rank = 3,
                                     .pid = 4711,
                                     .status = 0x8b,
                                     .wall_ms = 1760000000000,
                                     .strength = STRENGTH_STOPPED,
                                     .place = (1LL << 62) - 1,
                                     .number = 1234};
    n.quiet = 1;
    n.done = 7;
    n.number = 1235;
    n.call = 2;
    n.steps = (struct steps){5, 8, 20000, 31000, 11, 900};
    strcpy(n.cause.host, "pod-1");
    strcpy(n.cause.message, "a=b\n\"two\\nlines\"\\\n\n");
    return n;
}

static void test_nodes(void **state)
{
    cleanup_buf struct buf text = BUF_INIT(MESSAGE_STATE_BYTES);
    struct meeting_node n = a_node(), got;
    struct err err = {0};

    (void)state;
    (void)buf_append(&text, &n, sizeof(n), NULL);
    assert_false(text.full);
    if (meeting_get_node(text.data, text.len, &got, &err) < 0)
        fail_msg("%s", err.msg);
    assert_memory_equal(&n, &got, sizeof(n));
}

static void test_the_largest_state_fits_a_message(void **state)
{
    static struct meeting_state s, got;
    cleanup_buf struct buf text = BUF_INIT(MESSAGE_STATE_BYTES);
    struct err err = {0};

    (void)state;
    s = (struct meeting_state){
        .version = 9, .stage = STAGE_RUNNING, .keep_alive_ms = 5000, .n = MEETING_NODES_MAX};
    s.hung = s.asks = 1;
    s.cause.unsure = 2;
    s.done = 8;
    s.number = s.cause.place = s.cause.number = INT64_MAX / 2;
    s.call = INT32_MAX;
    s.here = MEETING_NODES_MAX;
    s.left_ms = 86400000;
    memset(s.missing, '\\', sizeof(s.missing) - 1);
    memset(s.why, '\n', sizeof(s.why) - 1);
    memset(s.cause.message, '\\', sizeof(s.cause.message) - 1);
    memset(s.master_addr, 'x', sizeof(s.master_addr) - 1);
    for (int i = 0; i < MEETING_NODES_MAX; i++)
        s.members[i] = (struct meeting_member){MEETING_TICKETS_MAX, 1024, i};
    meeting_put_state(&s, &text);
    assert_false(text.full);
    if (meeting_get_state(text.data, text.len, &got, &err) < 0)
        fail_msg("%s", err.msg);
    assert_memory_equal(&s, &got, sizeof(s));
}

/* Cut anywhere: an error. With one byte changed: an error or another word, never more than the fields hold. */
static void test_damage(void **state)
{
    cleanup_buf struct buf text = BUF_INIT(MESSAGE_STATE_BYTES);
    struct meeting_node n = a_node(), got;
    struct err err = {0};

    (void)state;
    (void)buf_append(&text, &n, sizeof(n), NULL);
    assert_false(text.full);
    for (size_t cut = 0; cut < text.len; cut++)
        assert_int_equal(meeting_get_node(text.data, cut, &got, &err), -1);
    for (size_t i = 0; i < text.len; i++)
        for (int c = 0; c < 256; c += 5) {
            char was = text.data[i];
            text.data[i] = (char)c;
            if (meeting_get_node(text.data, text.len, &got, &err) == 0)
                assert_true(got.nproc >= 1 && got.port <= 65535 && strlen(got.addr) < sizeof(got.addr) &&
                            strlen(got.cause.message) < sizeof(got.cause.message));
            text.data[i] = was;
        }
}

static void test_out_of_range(void **state)
{
    struct meeting_node n, got;
    struct err err = {0};

    (void)state;
    for (int i = 0; i < 9; i++) {
        cleanup_buf struct buf text = BUF_INIT(MESSAGE_STATE_BYTES);
        n = a_node();
        n.quiet = i == 4 ? 2 : n.quiet;
        n.cause.strength = i == 5 ? STRENGTHS : n.cause.strength;
        n.number = i == 6 ? -1 : n.number;
        n.steps.slow_us = i == 7 ? STEPS_US_MAX + 1 : n.steps.slow_us;
        n.steps.ranks = i == 8 ? STEPS_RANKS_MAX + 1 : n.steps.ranks;
        n.phase = i == 0 ? 99 : n.phase;
        n.nproc = i == 1 ? 0 : n.nproc;
        n.port = i == 2 ? 65536 : n.port;
        n.wanted = i == 3 ? MEETING_NODES_MAX : n.wanted;
        (void)buf_append(&text, &n, sizeof(n), NULL);
        assert_false(text.full);
        assert_int_equal(meeting_get_node(text.data, text.len, &got, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
    }
}

/* A role is one of the members up to its own. */
static void test_role_out_of_range(void **state)
{
    static struct meeting_state s, got;
    struct err err = {0};

    (void)state;
    for (int64_t role = -1; role < 4; role++) {
        cleanup_buf struct buf text = BUF_INIT(MESSAGE_STATE_BYTES);
        s = (struct meeting_state){.stage = STAGE_RUNNING, .keep_alive_ms = 1, .n = 3};
        for (int i = 0; i < 3; i++)
            s.members[i] = (struct meeting_member){i + 1, 1, i == 2 ? role : 0};
        meeting_put_state(&s, &text);
        assert_false(text.full);
        const bool good = role >= 0 && role < 3;
        assert_int_equal(meeting_get_state(text.data, text.len, &got, &err), good ? 0 : -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_the_largest_state_fits_a_message),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_out_of_range),
        cmocka_unit_test(test_role_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
