/* test_message.c - the bytes of messages between a node and the leader. */
#include "rendezvous/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct meeting_state told, heard;

/* One of each. */
static size_t all(struct message m[static 8])
{
    static const enum message_type types[] = {MESSAGE_HELLO,   MESSAGE_CHALLENGE, MESSAGE_ANSWER,
                                              MESSAGE_WELCOME, MESSAGE_REFUSED,   MESSAGE_NODE,
                                              MESSAGE_HEARD,   MESSAGE_STATE};

    for (size_t i = 0; i < 8; i++)
        m[i] = (struct message){.type = types[i]};
    m[0].hello =
        (struct message_hello){.version = MESSAGE_VERSION, .number = 7, .id = "an id", .run_id = "run"};
    m[1].challenge = (struct message_challenge){.leader = "leader", .nonce = "n", .answer = "a"};
    memset(m[2].answer, 5, sizeof(m[2].answer));
    m[3].ticket = 12;
    m[4].refusal = REFUSED_AUTH;
    m[5].node = (struct meeting_node){
        .phase = NODE_JOINING, .nproc = 3, .wanted = -1, .version = 4, .cause.rank = -1};
    m[6].beat = 1 << 30;
    told = (struct meeting_state){.version = 9, .stage = STAGE_RUNNING, .keep_alive_ms = 5000, .n = 1};
    told.members[0] = (struct meeting_member){.ticket = 12, .nproc = 3};
    m[7].state = &told;
    return 8;
}

static void test_each_comes_back(void **state)
{
    struct message m[8], got;
    struct err err = {0};

    (void)state;
    for (size_t i = 0, n = all(m); i < n; i++) {
        cleanup_buf struct buf bytes = BUF_INIT(MESSAGE_STATE_BYTES), again = BUF_INIT(MESSAGE_STATE_BYTES);
        size_t used = 0;
        assert_int_equal(message_put(&m[i], &bytes, &err), 0);
        assert_int_equal(message_frame(bytes.data, bytes.len, MESSAGE_STATE_BYTES, &used), 1);
        assert_int_equal(used, bytes.len);
        assert_int_equal(message_get(bytes.data, bytes.len, &got, &heard, &err), 0);
        assert_int_equal(got.type, m[i].type);
        assert_int_equal(message_put(&got, &again, &err), 0);
        assert_int_equal(again.len, bytes.len);
        assert_memory_equal(again.data, bytes.data, bytes.len);
    }
}

/* Less than a frame is none yet; a frame without its last byte, or with one too many, is no message. */
static void test_cut_and_stretched(void **state)
{
    struct message m[8], got;
    struct err err = {0};

    (void)state;
    for (size_t i = 0, n = all(m); i < n; i++) {
        cleanup_buf struct buf bytes = BUF_INIT(MESSAGE_STATE_BYTES);
        size_t used = 0;
        assert_int_equal(message_put(&m[i], &bytes, &err), 0);
        for (size_t k = 0; k < bytes.len; k++)
            assert_int_equal(message_frame(bytes.data, k, MESSAGE_STATE_BYTES, &used), 0);
        for (size_t k = 4; k < bytes.len; k++)
            assert_int_equal(message_get(bytes.data, k, &got, &heard, &err), -1);
        assert_int_equal(buf_append(&bytes, "x", 1, &err), 0);
        assert_int_equal(message_get(bytes.data, bytes.len, &got, &heard, &err), -1);
    }
}

/* What strangers send is no frame, or none that is waited for; another release is known as such whatever follows. */
static void test_strangers(void **state)
{
    static const char http[] = "GET / HTTP/1.0\r\n\r\n", empty[8] = {0};
    struct message m[8], got;
    struct err err = {0};
    size_t used;

    (void)state;
    assert_int_equal(message_frame(http, sizeof(http), MESSAGE_FIRST_BYTES, &used), -1);
    assert_int_equal(message_frame(empty, sizeof(empty), MESSAGE_FIRST_BYTES, &used), -1);
    cleanup_buf struct buf bytes = BUF_INIT(MESSAGE_STATE_BYTES);
    (void)all(m);
    assert_int_equal(message_put(&m[0], &bytes, &err), 0);
    bytes.data[12] = 9; /* behind the length, the type and the magic */
    assert_int_equal(message_get(bytes.data, 20, &got, &heard, &err), 0);
    assert_int_equal(got.hello.version, 9);
    bytes.data[7] ^= 1;
    assert_int_equal(message_get(bytes.data, bytes.len, &got, &heard, &err), -1);
}

/* The largest records fit. */
static void test_largest(void **state)
{
    struct message m = {.type = MESSAGE_STATE, .state = &told};
    struct err err = {0};

    (void)state;
    memset(&told, 0, sizeof(told));
    told = (struct meeting_state){
        .version = INT64_MAX / 2, .stage = STAGE_RUNNING, .keep_alive_ms = 1, .n = MEETING_NODES_MAX};
    memset(told.master_addr, '\n', sizeof(told.master_addr) - 1);
    memset(told.why, '\n', sizeof(told.why) - 1);
    memset(told.cause.message, '\n', sizeof(told.cause.message) - 1);
    memset(told.cause.host, '\n', sizeof(told.cause.host) - 1);
    memset(told.cause.error_file, '\n', sizeof(told.cause.error_file) - 1);
    for (int i = 0; i < MEETING_NODES_MAX; i++)
        told.members[i] = (struct meeting_member){.ticket = MEETING_TICKETS_MAX, .nproc = 1 << 20, .role = i};
    cleanup_buf struct buf bytes = BUF_INIT(MESSAGE_STATE_BYTES);
    assert_int_equal(message_put(&m, &bytes, &err), 0);
    m = (struct message){.type = MESSAGE_NODE};
    memset(m.node.addr, '\n', sizeof(m.node.addr) - 1);
    memset(m.node.role, '\n', sizeof(m.node.role) - 1);
    m.node.cause = told.cause;
    cleanup_buf struct buf node = BUF_INIT(MESSAGE_NODE_BYTES);
    assert_int_equal(message_put(&m, &node, &err), 0);
}

_Static_assert(STRENGTH_UNKNOWN == 1 && STRENGTH_ODD == 3 && STRENGTH_STOPPED == 7 && MESSAGE_VERSION == 2,
               "a number that is sent means the same in all launchers of a message version");
_Static_assert(sizeof(struct message_hello) == 320 && sizeof(struct message_challenge) == 81 &&
                   sizeof(struct meeting_node) == 2264 && sizeof(struct meeting_state) == 50496 &&
                   MESSAGE_VERSION == 2,
               "the structs are sent as they are: another size is another version");

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_comes_back),
        cmocka_unit_test(test_cut_and_stretched),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_largest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
