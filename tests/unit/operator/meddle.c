/* meddle.c - the runner of such tables. */
#include "meddle.h"
#include "faults.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int (*common_script)(int attempt, int index);

enum { WAIT_MS = 600000, ROWS_MAX = 64 };

static void edit(struct lab *l, const char *path, const char *what)
{
    bool ok = strcmp(what, MEDDLE_DELETE) == 0   ? fake_delete(l->server, path)
              : strcmp(what, MEDDLE_REMOVE) == 0 ? fake_remove(l->server, path)
                                                 : fake_put(l->server, path, what);

    assert_true(ok);
}

static void meddle(void **state)
{
    const struct meddle_row *row = *state;
    struct lab l;
    char summary[256];
    char got[512];
    char pods[512];
    int at;

    lab_start_direct(&l, row->script ? row->script : common_script, 1);
    lab_put(&l, LAB_JOB, LAB_TWO);
    lab_until_status(&l, "phase", "Running");
    lab_until(&l, lab_settled);
    int asked = lab_requests(&l);
    for (int i = 0; i < MEDDLE_EDITS_MAX && row->edits[i].path; i++)
        edit(&l, row->edits[i].path, row->edits[i].what);
    lab_pass_ms(&l, WAIT_MS);
    cleanup_json cJSON *job = lab_get(&l, LAB_JOB);
    const char *reason = json_str(json_child(job, "status"), "reason");
    lab_summary(&l, summary, sizeof(summary));
    snprintf(got, sizeof(got), "%s, %s", reason ? reason : "-", summary);
    lab_pod_history(&l, pods, sizeof(pods));
    asked = lab_requests(&l) - asked;
    const char *broken = fake_broken_rule(l.server, row->leave_out, &at);
    if (broken || asked > WAIT_MS / 1000)
        lab_explain(&l);
    if (broken)
        fail_msg("%s, at change %d", broken, at);
    if (asked > WAIT_MS / 1000)
        fail_msg("%d requests in ten minutes", asked);
    if (strcmp(got, row->want) != 0 || strcmp(pods, row->pods) != 0 ||
        fake_log_count(l.server, "DELETE", NULL) != row->deletes)
        fail_msg("want %s; pods%s; %d deletes\n got %s; pods%s; %d deletes (%d requests)", row->want,
                 row->pods, row->deletes, got, pods, fake_log_count(l.server, "DELETE", NULL), asked);
    lab_stop(&l);
}

int meddle_main(const char *class, const struct meddle_row *rows, size_t n,
                int (*script)(int attempt, int index))
{
    static struct CMUnitTest tests[ROWS_MAX];

    common_script = script;
    if (n > ROWS_MAX)
        abort();
    for (size_t i = 0; i < n; i++)
        tests[i] = (struct CMUnitTest){rows[i].name, meddle, NULL, NULL, (void *)(uintptr_t)&rows[i]};
    int failed = _cmocka_run_group_tests(class, tests, n, NULL, NULL);
    faults_report(class, (int)n, (int)n - failed);
    return failed;
}
