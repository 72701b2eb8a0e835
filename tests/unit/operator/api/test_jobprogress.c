/* test_jobprogress.c - what is believed of a launcher's answer and of status.progress, and what is written of it. */
#include "jsontext.h"
#include "operator/api/jobprogress.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

#define TIME "'time':'2026-11-24T10:00:00Z'"
#define HEAD "{'job':'u','attempt':2,'restarts':0," TIME
#define TIME_MS INT64_C(1795514400000)

static enum jobprogress_verdict ask(const char *text, struct jobprogress_answer *ret)
{
    cleanup_free char *json = jsontext(text);

    return jobprogress_answer(sv_from(json), "u", 2, ret);
}

/* The answer as it would stand in the status; "" for nothing. */
static void check_shown(const char *text, const char *want)
{
    cleanup_arena struct arena a = {0};
    cleanup_free char *json = jsontext(want);
    struct jobprogress_answer answer;

    assert_int_equal(ask(text, &answer), JOBPROGRESS_OK);
    cleanup_json cJSON *o = jobprogress_encode(&answer.progress);
    assert_string_equal(o ? json_print(o, &a) : "", json);
}

static void test_whole(void **state)
{
    struct jobprogress_answer a;

    (void)state;
    assert_int_equal(
        ask(HEAD ",'step':1200,'totalSteps':5000,'epoch':1,'totalEpochs':3,'percent':24.9,'etaSeconds':532,'"
                 "loss':0.531,'samplesPerSecond':812.5,'straggler':{'rank':3,'ratio':1.42}}",
            &a),
        JOBPROGRESS_OK);
    assert_true(a.progress.time_ms == TIME_MS);
    assert_int_equal(a.progress.step, 1200);
    assert_int_equal(a.progress.total_steps, 5000);
    assert_int_equal(a.progress.epoch, 1);
    assert_int_equal(a.progress.total_epochs, 3);
    assert_int_equal(a.progress.percent, 24);
    assert_int_equal(a.progress.eta_s, 532);
    assert_true(a.progress.loss == 0.531 && a.progress.samples_per_second == 812.5);
    assert_int_equal(a.slow_rank, 3);
    assert_true(a.slow_ratio == 1.42);
}

/* As launcher/progress/answer.c prints it. */
static void test_as_it_is_served(void **state)
{
    static const char TEXT[] =
        "{'job': 'u', 'attempt': 2, 'restarts': 0, 'time': '2026-11-24T10:00:00Z', 'step': 1200, 'percent': "
        "24, 'loss': 0.531, 'straggler': {'rank': 3, 'ratio': 1.42}}\n";

    (void)state;
    check_shown(TEXT, "{'step':1200,'percent':24,'loss':0.531," TIME ",'summary':'24%'}");
}

static void test_what_is_shown(void **state)
{
    static const struct {
        const char *members, *want; /* behind the time */
    } ROWS[] = {
        {"", ""},
        {",'step':0", "'step':0|,'summary':'step 0'"},
        {",'percent':0", "'percent':0|,'summary':'0%'"},
        {",'percent':100", "'percent':100|,'summary':'100%'"},
        {",'percent':99.99", "'percent':99|,'summary':'99%'"},
        {",'step':3,'percent':1", "'step':3,'percent':1|,'summary':'1%'"},
        {",'step':1000000000000000", "'step':1000000000000000|,'summary':'step 1000000000000000'"},
        {",'loss':-2.5e-7", "'loss':-2.5e-07|"},
        /* out of bounds */
        {",'step':1000000000000001", ""},
        {",'step':-1", ""},
        {",'step':1e400", ""},
        {",'step':-1e400", ""},
        {",'percent':100.01", ""},
        {",'percent':-0.5", ""},
        {",'percent':1e308", ""},
        {",'loss':1e400", ""},
        {",'samplesPerSecond':-1", ""},
        {",'samplesPerSecond':1e999", ""},
        {",'etaSeconds':99999999999999999999", ""},
        /* of another type */
        {",'step':'5'", ""},
        {",'step':null", ""},
        {",'step':true", ""},
        {",'percent':[47]", ""},
        {",'percent':{'percent':47}", ""},
        {",'loss':'NaN'", ""},
        {",'epoch':'\\u0000'", NULL},
        {",'summary':'100%','more':[{}]", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        char text[512];
        char want[512];
        struct jobprogress_answer answer;
        snprintf(text, sizeof(text), HEAD "%s}", ROWS[i].members);
        if (!ROWS[i].want) {
            assert_int_equal(ask(text, &answer), JOBPROGRESS_GARBAGE);
            continue;
        }
        size_t before = strcspn(ROWS[i].want, "|");
        snprintf(want, sizeof(want), "{%.*s%s" TIME "%s}", (int)before, ROWS[i].want, before ? "," : "",
                 ROWS[i].want[before] ? ROWS[i].want + before + 1 : "");
        check_shown(text, want);
    }
}

static void test_nothing_seen_yet(void **state)
{
    static const char *const ROWS[] = {
        "{'job':'u','attempt':2,'time':'','step':5}",
        "{'job':'u','attempt':2,'step':5}",
        "{'job':'u','attempt':2,'time':5,'step':5}",
        "{'job':'u','attempt':2,'time':'tomorrow','step':5}",
        "{'job':'u','attempt':2,'time':'1969-01-01T00:00:00Z','step':5}",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++)
        check_shown(ROWS[i], "");
}

static void test_no_answers(void **state)
{
    static const char *const GARBAGE[] = {
        "",
        "{",
        "[]",
        "null",
        "3",
        "'x'",
        "{}",
        "not json",
        HEAD,
        HEAD "} {}",
        "{'job':'u'}",
        "{'attempt':2}",
        "{'job':7,'attempt':2}",
        "{'job':'u','attempt':'2'}",
        "{'job':'u','attempt':-2}",
        "{'job':'u','attempt':2.5}",
        "{'job':'u','attempt':1e400}",
        "<html>",
        "{'job':'u\\u0000','attempt':2}",
    };
    static const char *const OTHERS[] = {
        "{'job':'v','attempt':2}",     "{'job':'','attempt':2}",           "{'job':'U','attempt':2}",
        "{'job':'u','attempt':1}",     "{'job':'u','attempt':3}",          "{'job':'uu','attempt':2}",
        "{'job':'u\xff','attempt':2}", "{'job':'u','attempt':4294967298}",
    };
    struct jobprogress_answer a;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(GARBAGE); i++)
        if (ask(GARBAGE[i], &a) != JOBPROGRESS_GARBAGE)
            fail_msg("%s", GARBAGE[i]);
    for (size_t i = 0; i < ARRAY_LEN(OTHERS); i++)
        if (ask(OTHERS[i], &a) != JOBPROGRESS_OTHERS)
            fail_msg("%s", OTHERS[i]);
}

static void test_long_and_deep(void **state)
{
    struct jobprogress_answer a;
    char text[JOBPROGRESS_ANSWER_BYTES + 2];
    cleanup_free char *begin = jsontext(HEAD ",'step':5,'more':");
    int head = snprintf(text, sizeof(text), "%s", begin);

    (void)state;
    memset(text + head, ' ', sizeof(text) - (size_t)head);
    memcpy(text + JOBPROGRESS_ANSWER_BYTES - 2, "1}", 2);
    assert_int_equal(jobprogress_answer((struct sv){text, JOBPROGRESS_ANSWER_BYTES}, "u", 2, &a),
                     JOBPROGRESS_OK);
    assert_int_equal(jobprogress_answer((struct sv){text, JOBPROGRESS_ANSWER_BYTES + 1}, "u", 2, &a),
                     JOBPROGRESS_GARBAGE);
    memset(text + head, '[', JOBPROGRESS_ANSWER_BYTES - (size_t)head);
    assert_int_equal(jobprogress_answer((struct sv){text, JOBPROGRESS_ANSWER_BYTES}, "u", 2, &a),
                     JOBPROGRESS_GARBAGE);
}

static void test_stragglers(void **state)
{
    static const struct {
        const char *member;
        int rank;
    } ROWS[] = {
        {"{'rank':0,'ratio':1.31}", 0},
        {"{'rank':2147483647,'ratio':1000000}", INT32_MAX},
        {"{'rank':2147483648,'ratio':2}", -1},
        {"{'rank':-1,'ratio':2}", -1},
        {"{'rank':1.5,'ratio':2}", -1},
        {"{'rank':3,'ratio':1}", -1},
        {"{'rank':3,'ratio':1e400}", -1},
        {"{'rank':3,'ratio':1000001}", -1},
        {"{'rank':3,'ratio':'2'}", -1},
        {"{'rank':'3','ratio':2}", -1},
        {"{'rank':3}", -1},
        {"{'ratio':3}", -1},
        {"[3,2]", -1},
        {"null", -1},
    };
    struct jobprogress_answer a;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        char text[256];
        snprintf(text, sizeof(text), HEAD ",'straggler':%s}", ROWS[i].member);
        assert_int_equal(ask(text, &a), JOBPROGRESS_OK);
        if (a.slow_rank != ROWS[i].rank)
            fail_msg("%s: %d", ROWS[i].member, a.slow_rank);
    }
}

static void test_moved(void **state)
{
    struct jobprogress none = {0};
    struct jobprogress p = {.time_ms = 1, .step = 5, .percent = 47, .loss = 2};
    struct jobprogress q = p;

    (void)state;
    q.step = 6;
    q.loss = 1;
    assert_false(jobprogress_moved(&p, &q));
    q.percent = 48;
    assert_true(jobprogress_moved(&p, &q));
    p.percent = q.percent = -1;
    assert_false(jobprogress_moved(&p, &q));
    assert_true(jobprogress_moved(&q, &p)); /* it began again */
    assert_true(jobprogress_moved(&none, &p));
    assert_false(jobprogress_moved(&none, &none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),         cmocka_unit_test(test_as_it_is_served),
        cmocka_unit_test(test_what_is_shown), cmocka_unit_test(test_nothing_seen_yet),
        cmocka_unit_test(test_no_answers),    cmocka_unit_test(test_long_and_deep),
        cmocka_unit_test(test_stragglers),    cmocka_unit_test(test_moved),
    };

    return cmocka_run_group_tests_name("jobprogress", tests, NULL, NULL);
}
