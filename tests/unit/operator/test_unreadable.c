/* test_unreadable.c - a hostile neighbour's objects beside a victim's job, and what becomes of the job whose objects they are:
 * it alone stands still, it is reported once, and it continues when they can be read again.
 */
#include "lab.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOBS "/apis/batch.tensorstack.dev/v1beta1/namespaces/evil/pytorchtrainingjobs/"

/* The text begins with `open` n times, then `close` n times, then `end`. */
struct raw {
    const char *open, *close, *end;
    int n;
};

static const struct raw RAWS[] = {
    {"[", "]", "", 70},        {"[", "]", "", 30000},          {"{'metadata':", "}", "", 100},
    {"", "", "'\\u0000'", 0},  {"", "", "{'a\\u0000b':1}", 0}, {"1", "1", "", 50},
    {"[[1],", "[1]]", "", 70},
};

static char *raw_text(const struct raw *r)
{
    cleanup_buf struct buf b = BUF_INIT(8 << 20);
    struct err err;

    for (int i = 0; i < r->n; i++)
        assert_int_equal(buf_puts(&b, r->open, &err), 0);
    if (r->open[0] == '{')
        assert_int_equal(buf_puts(&b, "1", &err), 0);
    for (int i = 0; i < r->n; i++)
        assert_int_equal(buf_puts(&b, r->close, &err), 0);
    assert_int_equal(buf_puts(&b, r->end, &err), 0);
    return strdup(buf_str(&b));
}

static bool running(struct lab *l)
{
    return lab_status_is(l, LAB_JOB, "phase", "Running") &&
           !lab_status_is(l, LAB_JOB, "reason", "Unreadable");
}

/* Lists of jobs and pods. */
static int lists(struct lab *l)
{
    return fake_log_count(l->server, "LIST", "/" TRAINJOB_PLURAL) +
           fake_log_count(l->server, "LIST", "/pods");
}

/* From now on: nothing the test did itself counts as quiet. */
static void settle(struct lab *l)
{
    l->idle = 0;
    lab_until(l, lab_settled);
}

static void test_a_victim_goes_on(void **state)
{
    static char large[(4 << 20) + 1];
    struct lab *l = lab_begin(state, lab_well);
    char path[160];

    l->collects = true;
    settle(l);
    int before = lists(l);
    assert_int_equal(before, 2); /* of jobs and of pods */
    memset(large, 'x', sizeof(large) - 1);
    large[0] = large[sizeof(large) - 2] = '"';
    for (size_t i = 0; i <= ARRAY_LEN(RAWS); i++) {
        cleanup_free char *raw = i < ARRAY_LEN(RAWS) ? raw_text(&RAWS[i]) : strdup(large);
        snprintf(path, sizeof(path), JOBS "evil-%zu", i);
        lab_put(l, path, LAB_TWO);
        assert_true(fake_put_raw(l->server, path, raw));
        lab_put(l, LAB_JOB, LAB_TWO);
        lab_until_status(l, "phase", "Succeeded");
        assert_true(fake_remove(l->server, LAB_JOB));
        settle(l);
        assert_int_equal(lab_cached(l).unreadable[CHILD_JOB], i + 1);
    }
    for (size_t i = 0; i <= ARRAY_LEN(RAWS); i++) {
        snprintf(path, sizeof(path), JOBS "evil-%zu", i);
        assert_true(lab_status_is(l, path, "reason", "Unreadable"));
        assert_true(fake_remove(l->server, path));
    }
    assert_int_equal(fake_count(l->server, "/api/v1/namespaces/evil/pods"), 0);
    assert_int_equal(lab_events(l, "Unreadable", NULL), ARRAY_LEN(RAWS) + 1);
    settle(l);
    assert_int_equal(lab_cached(l).jobs, 0);
    assert_int_equal(lists(l), before);
}

/* The job itself, or one of its children, cannot be read for a while. */
static void freeze_and_thaw(const char *path, enum child_kind kind)
{
    struct lab l;

    lab_start_direct(&l, lab_forever, 1);
    lab_put(&l, LAB_JOB, LAB_TWO);
    lab_until(&l, running);
    settle(&l);
    int before = lists(&l);
    int created = fake_log_count(l.server, "POST", "/pods");
    assert_true(fake_put_raw(l.server, path, "'\\u0000'"));
    lab_until_status(&l, "reason", "Unreadable");
    /* nothing is made or removed while it lasts */
    assert_true(fake_remove(l.server, LAB_PODS "/j-node-1"));
    assert_true(fake_put_raw(l.server, path, "'\\u0000 again'"));
    settle(&l);
    assert_true(lab_status_is(&l, LAB_JOB, "reason", "Unreadable"));
    assert_int_equal(lab_events(&l, "Unreadable", NULL), 1);
    assert_int_equal(lab_cached(&l).unreadable[kind], 1);
    assert_int_equal(fake_log_count(l.server, "POST", "/pods"), created);
    assert_int_equal(fake_log_count(l.server, "DELETE", NULL), 0);
    assert_true(lab_status_is(&l, LAB_JOB, "phase", "Running"));
    assert_true(fake_put_raw(l.server, path, NULL));
    lab_until(&l, running);
    settle(&l);
    assert_int_equal(lab_cached(&l).unreadable[kind], 0);
    assert_true(fake_log_count(l.server, "POST", "/pods") > created);
    assert_int_equal(lists(&l), before);
    lab_stop(&l);
}

static void test_frozen_and_back(void **state)
{
    (void)state;
    freeze_and_thaw(LAB_JOB, CHILD_JOB);
    freeze_and_thaw(LAB_PODS "/j-node-0", CHILD_POD);
    freeze_and_thaw(LAB_SERVICES "/j-rdzv", CHILD_SERVICE);
}

/* Spoiled before the operator ever saw them, deleted while unreadable: the end is honoured, and the job is made whole. */
static void test_gone_while_unreadable(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    lab_put(l, LAB_JOB, LAB_TWO);
    lab_until(l, running);
    settle(l);
    assert_true(fake_put_raw(l->server, LAB_PODS "/j-node-0", "['\\u0000']"));
    assert_true(fake_put_raw(l->server, LAB_PODS "/j-node-1", "['\\u0000']"));
    lab_crash(l);
    LAB_UNTIL(l,
              lab_status_is(l, LAB_JOB, "reason", "Unreadable") && lab_cached(l).unreadable[CHILD_POD] == 2);
    assert_true(fake_remove(l->server, LAB_PODS "/j-node-0"));
    assert_true(fake_remove(l->server, LAB_PODS "/j-node-1"));
    lab_until(l, running);
    settle(l);
    assert_int_equal(lab_cached(l).unreadable[CHILD_POD], 0);
    assert_int_equal(fake_count(l->server, LAB_PODS), 2);
}

/* Made by an operator that died before it wrote so, and without the label: it is what was wanted. */
static void test_name_taken_by_ours(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);
    char body[400];

    lab_put(l, LAB_JOB, LAB_TWO);
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);
    snprintf(body, sizeof(body),
             "{'metadata':{'ownerReferences':[{'apiVersion':'" TRAINJOB_API_VERSION "','kind':'" TRAINJOB_KIND
             "','name':'j','controller':true,'uid':'%s'}]}}",
             json_str(cJSON_GetObjectItem(job, "metadata"), "uid"));
    lab_put(l, LAB_PODS "/j-node-1", body);
    assert_true(fake_put_raw(l->server, LAB_PODS "/j-node-1", "'\\u0000'"));
    settle(l);
    assert_false(lab_status_is(l, LAB_JOB, "reason", "NameConflict"));
    assert_int_equal(fake_count(l->server, LAB_PODS), 2);
    assert_int_equal(fake_log_count(l->server, "DELETE", NULL), 0);
}

/* Ours, but without the label by which it is watched: it was taken from us, as one that is gone. What has its name is neither made
 * again nor removed, since its attempt is not known. */
static void test_ours_without_its_label(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    lab_put(l, LAB_JOB, LAB_TWO);
    lab_until(l, running);
    settle(l);
    assert_true(fake_put_raw(l->server, LAB_PODS "/j-node-1", "'\\u0000'"));
    lab_put(l, LAB_PODS "/j-node-1", "{'metadata':{'labels':null}}");
    lab_crash(l);
    int before = lab_requests(l);
    settle(l);
    assert_int_equal(fake_log_count(l->server, "DELETE", "/j-node-1"), 0);
    assert_true(lab_requests(l) - before < 100);
}

/* Pods with our label that belong to nobody, or to another kind. */
static void test_others_are_not_kept(void **state)
{
    static const char *const OWNERS[] = {
        "[]",
        "[{'apiVersion':'batch/v1','kind':'Job','name':'j','uid':'u','controller':true}]",
        "[{'apiVersion':'v1','kind':'" TRAINJOB_KIND "','name':'j','uid':'u','controller':true}]",
        "[{'apiVersion':'" TRAINJOB_API_VERSION "','kind':'" TRAINJOB_KIND "','name':'j','uid':'u'}]",
        "[{'apiVersion':'" TRAINJOB_API_VERSION "','kind':'" TRAINJOB_KIND
        "','name':'j','controller':true,'uid':'"
        "0123456789012345678901234567890123456789012345678901234567890123456789'}]",
    };
    struct lab *l = lab_begin(state, lab_forever);
    char path[160], body[800];

    for (size_t i = 0; i < ARRAY_LEN(OWNERS); i++) {
        snprintf(path, sizeof(path), "/api/v1/namespaces/evil/pods/p-%zu", i);
        snprintf(body, sizeof(body), "{'metadata':{'labels':{'" LABEL_JOB "':'j'},'ownerReferences':%s}}",
                 OWNERS[i]);
        lab_put(l, path, body);
    }
    settle(l);
    assert_int_equal(lab_cached(l).pods, 0);
    assert_true(fake_put_raw(l->server, "/api/v1/namespaces/evil/pods/p-0", "'\\u0000'"));
    settle(l);
    assert_int_equal(lab_cached(l).unreadable[CHILD_POD], 0);
}

/* What another controller manages, and what is being deleted: no status, no event. */
static void test_left_alone(void **state)
{
    static const char *const OTHERS[] = {
        "{'spec':{'runPolicy':{'managedBy':'kueue.x-k8s.io/multikueue'}}}",
        "{'spec':{'runPolicy':{'managedBy':'a \\'quoted\\' one'}}}",
        "{'metadata':{'finalizers':['a.example/b']}}",
    };
    static char large[(4 << 20) + 1];
    struct lab *l = lab_begin(state, lab_forever);
    char path[160];

    memset(large, 'x', sizeof(large) - 1);
    large[0] = large[sizeof(large) - 2] = '"';
    for (int big = 0; big < 2; big++) {
        for (size_t i = 0; i < ARRAY_LEN(OTHERS); i++) {
            snprintf(path, sizeof(path), JOBS "other-%zu", i);
            lab_put(l, path, OTHERS[i]);
            assert_true(i < 2 || fake_delete(l->server, path));
            assert_true(fake_put_raw(l->server, path, big ? large : "'\\u0000'"));
        }
        settle(l);
        assert_int_equal(lab_cached(l).unreadable[CHILD_JOB], ARRAY_LEN(OTHERS));
        assert_int_equal(fake_log_count(l->server, "PATCH", NULL), 0);
        assert_int_equal(lab_events(l, "Unreadable", NULL), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LAB_TEST(test_a_victim_goes_on),
        cmocka_unit_test(test_frozen_and_back),
        LAB_TEST(test_gone_while_unreadable),
        LAB_TEST(test_name_taken_by_ours),
        LAB_TEST(test_ours_without_its_label),
        LAB_TEST(test_others_are_not_kept),
        LAB_TEST(test_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
