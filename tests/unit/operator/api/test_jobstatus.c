/* test_jobstatus.c - the status survives writing and reading; what someone broke in it counts as lost. */
#include "jsontext.h"
#include "operator/api/jobstatus.h"
#include "test.h"
#include "yamldoc.h"

#include <string.h>

static const char FULL[] =
    "{'phase':'Pending','reason':'Restarting','observedGeneration':3,'startTime':'2026-01-01T00:00:00Z','"
    "attempt':2,'backoffCount':1,'disruptionCount':1,'admissionCount':0,'resumeCount':4,'restarts':3,'"
    "ranAttempt':1,'conditions':[{'type':'Running','status':'False','reason':'Restarting','message':'0 of "
    "2','lastTransitionTime':'2026-01-01T00:00:05Z','observedGeneration':3}],'aggregate':{'creating':1,'"
    "pending':0,'running':0,'succeeded':0,'failed':0,'unknown':0,'deleted':1},'ready':'0/"
    "2','replicas':1,'selector':'a=b','gpus':8,'lastExit':'137 "
    "Killed','tasks':[{'type':'node','restartCount':2,'replicas':[{'name':'j-node-0','phase':'Creating','"
    "restarts':0,'containers':[]},{'name':'j-node-1','uid':'u','phase':'Deleted','restarts':1,'containers':[{"
    "'name':'pytorch','state':'Terminated','exitCode':0}]}]}],'lastFailure':{'pod':'j-node-0','uid':'u0','"
    "node':'n','rank':0,'exitCode':137,'signal':9,'reason':'Killed','message':'m','time':'2026-01-01T00:01:"
    "00Z','attempt':1},'failures':[{'pod':'j-node-0','uid':'u0','reason':'Killed','time':'2026-01-01T00:01:"
    "00Z','attempt':1}],'tensorboard':{'ready':true,'reason':'Available','service':'s'},'progress':{'step':5,"
    "'totalSteps':9,'epoch':1,'totalEpochs':2,'percent':47,'etaSeconds':60,'loss':0.25,'samplesPerSecond':"
    "812.5,'time':'2026-01-01T00:00:05Z','summary':'47%'}}";

static void test_round_trip(void **state)
{
    cleanup_arena struct arena a = {0};
    cleanup_json cJSON *in = jsontext_parse(FULL);
    struct jobstatus s;

    (void)state;
    jobstatus_decode(in, &a, &s);
    cleanup_json cJSON *out = jobstatus_encode(&s);
    cleanup_free char *full = jsontext(FULL);
    assert_string_equal(json_print(out, &a), full);
}

/* Reading must survive, and what is written again must be sound. */
static void read_any(void *ctx, const cJSON *spoiled)
{
    cleanup_arena struct arena a = {0};
    struct jobstatus s;

    (void)ctx;
    jobstatus_decode(spoiled, &a, &s);
    cleanup_json cJSON *out = jobstatus_encode(&s);
    assert_non_null(out);
    assert_true(s.attempt >= 0 && s.backoff_count >= 0 && s.n_failures <= JOBSTATUS_FAILURES_MAX);
}

static void test_nonsense(void **state)
{
    cleanup_json cJSON *in = jsontext_parse(FULL);

    (void)state;
    assert_true(yamldoc_spoil(in, read_any, NULL) > 500);
}

static void test_too_many_failures(void **state)
{
    cleanup_arena struct arena a = {0};
    cleanup_json cJSON *in = jsontext_parse(
        "{'failures':[{'attempt':0},{'attempt':1},{'attempt':2},{'attempt':3},{'attempt':4},{'attempt':5},{'"
        "attempt':6},{'attempt':7},{'attempt':8},{'attempt':9},{'attempt':10},{'attempt':11}]}");
    struct jobstatus s;

    (void)state;
    jobstatus_decode(in, &a, &s);
    assert_int_equal(s.n_failures, 10);
    assert_int_equal(s.failures[0].attempt, 2);
    assert_int_equal(s.failures[9].attempt, 11);
}

/* Counts that counting never reaches count as lost; so do more types and pods than a job may have. */
static void test_bounds(void **state)
{
    cleanup_arena struct arena a = {0};
    cleanup_json cJSON *in =
        jsontext_parse("{'attempt':1073741824,'backoffCount':2147483647,'disruptionCount':-1,'admissionCount'"
                       ":1e300,'resumeCount':1073741823,'tasks':[{'type':'t','restartCount':2147483647,'"
                       "replicas':[{'name':'p','restarts':1073741824}]}]}");
    cJSON *tasks = cJSON_GetObjectItem(in, "tasks");
    cJSON *replicas = cJSON_GetObjectItem(tasks->child, "replicas");
    struct jobstatus s;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        cJSON_AddItemToArray(tasks, cJSON_CreateObject());
        cJSON_AddItemToArray(replicas, cJSON_CreateObject());
    }
    jobstatus_decode(in, &a, &s);
    assert_int_equal(s.attempt, 0);
    assert_int_equal(s.backoff_count, 0);
    assert_int_equal(s.disruption_count, 0);
    assert_int_equal(s.admission_count, 0);
    assert_int_equal(s.resume_count, COUNT_MAX);
    assert_int_equal(count_up(s.resume_count), COUNT_MAX);
    assert_int_equal(s.n_tasks, JOBSTATUS_TASKS_MAX);
    assert_int_equal(s.tasks[0].restart_count, 0);
    assert_int_equal(s.tasks[0].replicas[0].restarts, 0);
    assert_int_equal(s.tasks[0].n_replicas, JOBSTATUS_REPLICAS_MAX);
}

static void test_long_messages_keep_their_end(void **state)
{
    char text[4096];
    struct jobstatus s = {0};
    struct failure f = {.pod = "p", .uid = "u", .reason = "R", .message = text, .rank = -1, .exit_code = -1};

    (void)state;
    for (size_t i = 0; i + 2 < sizeof(text); i += 2)
        memcpy(text + i, "\xc3\xa9", 2);
    text[sizeof(text) - 2] = '!';
    text[sizeof(text) - 1] = '\0';
    s.last_failure = &f;
    s.failures = &f;
    s.n_failures = 1;
    cleanup_json cJSON *out = jobstatus_encode(&s);
    const char *last = json_str(json_child(out, "lastFailure"), "message");
    const char *old = json_str(json_child(out, "failures")->child, "message");
    assert_true(strlen(last) <= 2048 && strlen(last) >= 2046 && last[strlen(last) - 1] == '!');
    assert_true(strlen(old) <= 256 && strlen(old) >= 254 && old[strlen(old) - 1] == '!');
    assert_int_equal((unsigned char)last[0], 0xc3); /* not the second half of a letter */
    assert_int_equal((unsigned char)old[0], 0xc3);
}

/* What is written is what the API server keeps: else it would be written again for ever. */
static void test_cut_characters_are_mended(void **state)
{
    static const struct {
        const char *given, *kept;
    } rows[] = {
        {"caf\xc3\xa9 \xe4\xbd\xa0 \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe4\xbd\xa0 \xf0\x9f\x98\x80"},
        {"got 'caf\xc3' here", "got 'caf?' here"},
        {"cut \xe4\xbd", "cut ??"},
        {"cut \xe4", "cut ?"},
        {"cut \xf0\x9f\x98", "cut ???"},
        {"\x80 \xc0\xaf \xff", "? ?? ?"},              /* no beginning; longer than need be; never */
        {"\xed\xa0\x80 \xf4\x90\x80\x80", "??? ????"}, /* half of a pair; beyond the last */
        {"\xe0\x9f\xbf \xf0\x8f\xbf\xbf", "??? ????"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct failure f = {.reason = rows[i].given, .message = rows[i].given, .rank = -1, .exit_code = -1};
        struct jobstatus s = {.last_failure = &f};
        s.conditions[COND_INVALID_SPEC] =
            (struct condition){.state = COND_TRUE, .reason = rows[i].given, .message = rows[i].given};
        cleanup_json cJSON *out = jobstatus_encode(&s);
        const cJSON *condition = json_child(out, "conditions")->child;
        const cJSON *failure = json_child(out, "lastFailure");
        assert_string_equal(json_str(condition, "message"), rows[i].kept);
        assert_string_equal(json_str(condition, "reason"), rows[i].kept);
        assert_string_equal(json_str(failure, "message"), rows[i].kept);
        assert_string_equal(json_str(failure, "reason"), rows[i].kept);
    }
}

/* n conditions "x0", "x1" ... with a message of so many bytes; the oldest one is the last. Behind the first of them stands
 * one of ours. */
static cJSON *others(int n, int bytes)
{
    cJSON *in = jsontext_parse("{'conditions':[]}");
    cJSON *list = cJSON_GetObjectItem(in, "conditions");
    static char message[40000];
    static char text[40100];

    memset(message, 'm', (size_t)bytes);
    message[bytes] = '\0';
    for (int i = 0; i < n; i++) {
        snprintf(
            text, sizeof(text),
            "{'type':'x%d','status':'True','lastTransitionTime':'2026-01-02T03:04:%02dZ','message':'%s'}", i,
            59 - i, message);
        cJSON *c = jsontext_parse(text);
        cJSON_AddItemToArray(list, c);
        if (i == 0)
            cJSON_AddItemToArray(list, jsontext_parse("{'type':'Running','status':'True'}"));
    }
    return in;
}

static void test_others_conditions_stay(void **state)
{
    static const struct {
        int n, bytes, left;
    } ROWS[] = {{1, 0, 1},   {25, 10, 25},   {26, 10, 25}, {31, 10, 25},
                {32, 10, 0}, {25, 32768, 1}, {2, 32768, 1}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        cleanup_arena struct arena a = {0};
        cleanup_json cJSON *in = others(ROWS[i].n, ROWS[i].bytes);
        struct jobstatus s;
        jobstatus_decode(in, &a, &s);
        for (int t = 0; t < COND_TYPES; t++)
            s.conditions[t].state = COND_FALSE;
        cleanup_json cJSON *out = jobstatus_encode(&s);
        const cJSON *was = json_child(in, "conditions");
        const cJSON *is = json_child(out, "conditions");
        if (cJSON_GetArraySize(is) != ROWS[i].left + COND_TYPES)
            fail_msg("row %zu: %d conditions", i, cJSON_GetArraySize(is));
        if (ROWS[i].left == 0)
            continue;
        /* The youngest ones, as they were, where they were; and ours among them. */
        assert_true(cJSON_Compare(cJSON_GetArrayItem(was, 0), cJSON_GetArrayItem(is, 0), true));
        assert_string_equal(json_str(cJSON_GetArrayItem(is, 1), "type"), "Running");
        for (int k = 1; k < ROWS[i].left; k++)
            assert_true(cJSON_Compare(cJSON_GetArrayItem(was, k + 1), cJSON_GetArrayItem(is, k + 1), true));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_too_many_failures),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_long_messages_keep_their_end),
        cmocka_unit_test(test_cut_characters_are_mended),
        cmocka_unit_test(test_others_conditions_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
