/* test_progress.c - the progress that a launcher reports gets into the status of its job, not too often, and never harms the job.
 * A proxy stands in front of the training container.
 */
#include "common/contract.h"
#include "fakepods.h"
#include "jsontext.h"
#include "lab.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

#define JOB                                                                                                  \
    "{'apiVersion':'" TRAINJOB_API_VERSION "','kind':'" TRAINJOB_KIND                                        \
    "','metadata':{'name':'j','namespace':'ns'},'spec':{'torchrunConfig':{'enabled':true},'replicaSpecs':[{" \
    "'type':'node','replicas':1,'restartPolicy':'ExitCode','template':{'spec':{'containers':[{'name':'"      \
    "trainer','image':'i'}]}}}]}}"

struct rig {
    struct lab lab; /* first: lab_until passes it on */
    struct fakepods pods;
    char uid[64];
    double percent;
    int step;
    const char *more;
    int attempt;
};

static void answer(void *ctx, const char *path, struct fakepods_reply *ret)
{
    struct rig *r = ctx;
    char body[512];

    assert_string_equal(path, "10.0.0.1");
    snprintf(
        body, sizeof(body),
        "{'job':'%s','attempt':%d,'restarts':0,'time':'2026-11-24T10:00:00Z','step':%d,'percent':%.1f%s}",
        contract_job_mark(r->uid), r->attempt, r->step++, r->percent, r->more);
    cleanup_free char *json = jsontext(body);
    fakepods_say(ret, json);
}

static void rig_start(struct rig *r, int (*script)(int attempt, int index))
{
    *r = (struct rig){.percent = 47.5, .more = ""};
    lab_start_direct(&r->lab, script, 1);
    r->lab.progress_url = fakepods_url;
    r->lab.hold_master = true;
    r->lab.mesh = true;
    lab_crash(&r->lab);
    r->pods.loop = r->lab.operators[0].loop;
    r->pods.answer = answer;
    r->pods.ctx = r;
    fakepods_start(&r->pods);
    lab_put(&r->lab, LAB_JOB, JOB);
    cleanup_json cJSON *job = lab_get(&r->lab, LAB_JOB);
    snprintf(r->uid, sizeof(r->uid), "%s", json_meta(job, "uid"));
    lab_until_status(&r->lab, "phase", "Running");
}

static void rig_stop(struct rig *r)
{
    fakepods_stop(&r->pods);
    lab_stop(&r->lab);
}

static bool shows(struct lab *l, const char *want)
{
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);
    const char *got = json_str(json_find(job, (const char *[]){"status", "progress", NULL}), "summary");

    return got ? want && strcmp(got, want) == 0 : !want;
}

static void test_written(void **state)
{
    struct rig r;

    (void)state;
    rig_start(&r, lab_well);
    LAB_UNTIL(&r.lab, shows(&r.lab, "47%"));
    int writes = fake_log_count(r.lab.server, "PATCH", "/status");
    int asked = r.pods.requests;
    uint64_t passes = lab_counts(&r.lab).passes;
    lab_pass_ms(&r.lab, 590000);
    assert_in_range(r.pods.requests - asked, 50, 61);
    assert_in_range(fake_log_count(r.lab.server, "PATCH", "/status") - writes, 8, 10); /* once a minute */
    /* Most answers cause no pass. */
    const struct controller_counts counts = lab_counts(&r.lab);
    assert_in_range(counts.passes - passes, 8, 30);
    assert_int_equal(counts.polls.ok, r.pods.requests);
    assert_int_equal(counts.polls.failed + counts.polls.dropped, 0);
    r.percent = 48;
    LAB_UNTIL(&r.lab, shows(&r.lab, "48%"));
    r.lab.hold_master = false;
    lab_until_status(&r.lab, "phase", "Succeeded");
    assert_true(shows(&r.lab, "100%"));
    asked = r.pods.requests;
    lab_pass_ms(&r.lab, 60000);
    assert_int_equal(r.pods.requests, asked);
    rig_stop(&r);
}

/* An operator is upgraded before its CRD: each write of the progress is in vain, and there are few. */
static void test_older_crd(void **state)
{
    struct rig r;

    (void)state;
    rig_start(&r, lab_well);
    fake_unknown_status(r.lab.server, "progress");
    lab_pass_ms(&r.lab, 60000);
    int writes = fake_log_count(r.lab.server, "PATCH", "/status");
    for (int i = 0; i < 100; i++) {
        r.percent = i % 2 ? 60 : 30;
        lab_pass_ms(&r.lab, 6000);
    }
    assert_in_range(fake_log_count(r.lab.server, "PATCH", "/status") - writes, 1, 3);
    assert_true(shows(&r.lab, NULL));
    fake_unknown_status(r.lab.server, NULL); /* the CRD comes */
    r.percent = 47.5;
    LAB_UNTIL(&r.lab, shows(&r.lab, "47%"));
    rig_stop(&r);
}

/* Of another job, of another attempt, or garbage: the job continues as without a poll. */
static void test_lies(void **state)
{
    static const char *const UIDS[] = {"someone", "'", ""};
    struct rig r;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(UIDS); i++) {
        rig_start(&r, lab_well);
        snprintf(r.uid, sizeof(r.uid), "%s", UIDS[i]);
        int asked = r.pods.requests;
        lab_pass_ms(&r.lab, 120000);
        assert_true(r.pods.requests > asked);
        assert_true(shows(&r.lab, NULL));
        r.lab.hold_master = false;
        lab_until_status(&r.lab, "phase", "Succeeded");
        assert_true(shows(&r.lab, NULL));
        rig_stop(&r);
    }
}

/* The answers of the first attempt are nobody's any more, and what it came to stays until the next one answers. */
static void test_next_attempt(void **state)
{
    struct rig r;

    (void)state;
    rig_start(&r, lab_killed);
    LAB_UNTIL(&r.lab, shows(&r.lab, "47%"));
    r.percent = 99;
    r.lab.hold_master = false;
    lab_until_status(&r.lab, "phase", "Pending");
    r.lab.hold_master = true;
    lab_until_status(&r.lab, "phase", "Running");
    lab_pass_ms(&r.lab, 60000);
    assert_true(shows(&r.lab, "47%"));
    r.attempt = 1;
    LAB_UNTIL(&r.lab, shows(&r.lab, "99%"));
    rig_stop(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written),
        cmocka_unit_test(test_lies),
        cmocka_unit_test(test_older_crd),
        cmocka_unit_test(test_next_attempt),
    };

    return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
