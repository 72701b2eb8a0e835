/* test_waiting.c - the messages of a launcher that waits for other nodes, by a simulated clock. */
#include "launcher/waiting.h"
#include "test.h"

#include <netdb.h>
#include <string.h>

struct fixture {
    struct options options;
    struct meet_view view;
    struct waiting w;
};

static int setup(void **state)
{
    static struct fixture f;

    memset(&f, 0, sizeof(f));
    f.options = (struct options){
        .nnodes_min = 4, .nnodes = 4, .meeting = {.host = "job-0", .port = 29400, .node.join_ms = 600000}};
    waiting_begin(&f.w, 1000);
    *state = &f;
    return 0;
}

static void expect(struct fixture *f, int64_t now_ms, const char *want)
{
    static const char begin[] = "rendezvous at job-0:29400: waiting for ";
    char text[WAITING_BYTES];

    (void)waiting_due(&f->w, &f->view, now_ms);
    waiting_format(&f->w, &f->options, &f->view, now_ms, text);
    assert_memory_equal(text, begin, strlen(begin));
    assert_string_equal(text + strlen(begin), want);
}

static void after_ten_seconds_and_every_minute(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(f->w.due_ms, 6000);
    assert_false(waiting_due(&f->w, &f->view, 6000)); /* no name is to blame */
    assert_int_equal(f->w.due_ms, 11000);
    assert_false(waiting_due(&f->w, &f->view, 10999));
    assert_int_equal(f->w.due_ms, 11000);
    assert_true(waiting_due(&f->w, &f->view, 11000));
    assert_false(waiting_due(&f->w, &f->view, 11001));
    assert_int_equal(f->w.due_ms, 71000);
    assert_false(waiting_due(&f->w, &f->view, 70999));
    assert_true(waiting_due(&f->w, &f->view, 72000)); /* late: the next is a minute later all the same */
    assert_false(waiting_due(&f->w, &f->view, 131999));
    f->w.due_ms = 0;
    assert_false(waiting_due(&f->w, &f->view, 200000));
}

static void of_a_name_that_does_not_resolve(void **state)
{
    struct fixture *f = *state;

    f->view.err.code = EAI_NONAME;
    assert_false(waiting_due(&f->w, &f->view, 5999));
    assert_true(waiting_due(&f->w, &f->view, 6000));
    assert_int_equal(f->w.due_ms, 66000);
    assert_false(waiting_due(&f->w, &f->view, 11000)); /* it has been printed */
}

static void for_the_store(void **state)
{
    struct fixture *f = *state;

    expect(f, 11000, "the node that hosts it for 10 s; gives up in 590 s");
    snprintf(f->view.err.msg, sizeof(f->view.err.msg), "no such host");
    expect(f, 601500, "the node that hosts it for 600 s; gives up in 0 s (no such host)");
}

static void for_nodes(void **state)
{
    struct fixture *f = *state;

    f->view.stage = NODE_WAITS;
    f->view.state = (struct meeting_state){.version = 1, .stage = STAGE_FORMING, .left_ms = 600000};
    expect(f, 2000, "other nodes for 1 s: 4 nodes are wanted; gives up in 600 s");
    f->view.state.version = 2;
    f->view.state.here = 2;
    f->view.state.left_ms = 500000;
    snprintf(f->view.state.missing, sizeof(f->view.state.missing), "1, 3");
    expect(f, 6000,
           "other nodes for 5 s: 2 of 4 nodes have joined, node ranks missing: 1, 3; gives up in 500 s");
    /* The time counts from when the message was received. */
    expect(f, 11000,
           "other nodes for 10 s: 2 of 4 nodes have joined, node ranks missing: 1, 3; gives up in 495 s");
    f->options.nnodes_min = 2;
    f->view.state.missing[0] = '\0';
    /* Enough: it is not given up any more. */
    expect(f, 11000, "other nodes for 10 s: 2 of at least 2 and at most 4 nodes have joined");
}

static void for_a_place_and_for_ranks(void **state)
{
    struct fixture *f = *state;

    f->view.stage = NODE_WAITS;
    f->view.state = (struct meeting_state){.version = 5, .stage = STAGE_RUNNING, .round = 3};
    f->view.round = 4;
    f->view.spare_until_ms = 301000;
    expect(f, 11000,
           "a place among the nodes of the run for 10 s; gives up in "
           "290 s");
    f->view.stage = NODE_RESTS;
    expect(f, 71000,
           "the ranks of the other nodes, those of this one have ended, for "
           "70 s");
}

static void nothing_is_too_long(void **state)
{
    struct fixture *f = *state;
    char host[300], text[WAITING_BYTES];

    memset(host, 'h', sizeof(host) - 1);
    host[sizeof(host) - 1] = '\0';
    f->options.meeting.host = host;
    memset(f->view.err.msg, 'e', sizeof(f->view.err.msg) - 1);
    waiting_format(&f->w, &f->options, &f->view, INT64_MAX / 2, text);
    assert_non_null(strchr(text, 'e'));
    assert_true(strlen(text) < WAITING_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(after_ten_seconds_and_every_minute, setup),
        cmocka_unit_test_setup(of_a_name_that_does_not_resolve, setup),
        cmocka_unit_test_setup(for_the_store, setup),
        cmocka_unit_test_setup(for_nodes, setup),
        cmocka_unit_test_setup(for_a_place_and_for_ranks, setup),
        cmocka_unit_test_setup(nothing_is_too_long, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
