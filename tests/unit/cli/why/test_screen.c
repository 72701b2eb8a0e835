/* test_screen.c - `kubectl ptj why` on staged failures: every folder of tests/golden/why is a case.
 *
 * case.yaml  now, cause (what the first three lines have to say), job, and what was read besides it: pods, events, claims, nodes,
 *            log, gaps. Of a recorded run (e2e/failures/record.py): cause, exitCode, message (of the launcher, if it left one) and log;
 *            the rest is that of _recorded, and the job's status is made of the operator's own verdict
 * want.txt   the screen; GOLDEN_UPDATE=1 writes it anew
 * WHY_GOLDEN names another folder of cases.
 */
#include "test.h"

#include "cli/shown.h"
#include "cli/why/screen.h"
#include "common/clock.h"
#include "common/fsutil.h"
#include "common/json.h"
#include "common/yaml.h"
#include "operator/plan/exitcode.h"
#include "operator/plan/rootcause.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN TK_SOURCE_DIR "/tests/golden/why"

enum { CASES_MAX = 200, CASES_MIN = 40, TEXT_MAX = 1 << 20, ROWS = 24, COLUMNS = 80, CAUSE_ROWS = 3 };

static const char *golden = GOLDEN;

static cJSON *read_case(const char *name)
{
    cleanup_arena struct arena a = {0};
    cleanup_buf struct buf text = BUF_INIT(TEXT_MAX);
    struct yaml_tree *tree;
    struct err err;
    char path[512];

    snprintf(path, sizeof(path), "%s/%s/case.yaml", golden, name);
    if (fs_read(path, &text, &err) < 0 ||
        yaml_tree_parse(path, buf_str(&text), text.len, &a, &tree, &err) < 0)
        fail_msg("%s", err.msg);
    return yaml_json(tree);
}

/* What the operator writes into the status when this pod has ended. */
static void add_failure(cJSON *doc, const struct verdict *v)
{
    cleanup_arena struct arena a = {0};
    cJSON *status = cJSON_GetObjectItem(cJSON_GetObjectItem(doc, "job"), "status"), *f = cJSON_CreateObject();

    cJSON_AddStringToObject(f, "pod", "bert-node-0");
    cJSON_AddStringToObject(f, "uid", "p-0");
    cJSON_AddStringToObject(f, "node", "gpu-1");
    cJSON_AddStringToObject(f, "reason", v->reason);
    cJSON_AddStringToObject(f, "message", rootcause_text(v->message, &a));
    cJSON_AddStringToObject(f, "time", "2026-01-01T09:57:00Z");
    cJSON_AddNumberToObject(f, "attempt", 0);
    cJSON_AddNumberToObject(f, "exitCode", v->exit_code);
    if (v->rank >= 0)
        cJSON_AddNumberToObject(f, "rank", v->rank);
    if (v->signal)
        cJSON_AddNumberToObject(f, "signal", v->signal);
    cJSON_AddStringToObject(status, "reason", v->reason);
    cJSON_AddItemToObject(status, "lastFailure", f);
}

/* What the kubelet takes for a message of a container that left none: the last 80 lines of its log, 2,048 bytes at most. */
static cJSON *end_of(const char *log)
{
    const char *at = log + strlen(log);

    for (int lines = 0; at > log && lines <= 80 && strlen(at) < 2048; at--)
        lines += at[-1] == '\n';
    return cJSON_CreateString(at);
}

/* A recorded run becomes a case like the others. */
static cJSON *with_status(cJSON *run)
{
    static const char *const TERMINATED[] = {"state", "terminated", NULL}, *const STATES[] = {"status", NULL};
    cJSON *doc = read_case("_recorded");
    const cJSON *pod_object = cJSON_GetArrayItem(cJSON_GetObjectItem(doc, "pods"), 0);
    const cJSON *states = cJSON_GetObjectItem(json_find(pod_object, STATES), "containerStatuses");
    cJSON *end = (cJSON *)(uintptr_t)json_find(cJSON_GetArrayItem(states, 0), TERMINATED);
    const struct run_policy policy = {0};
    struct err err;

    cJSON_AddItemToObject(end, "exitCode", cJSON_DetachItemFromObject(run, "exitCode"));
    cJSON_AddItemToObject(end, "message",
                          cJSON_HasObjectItem(run, "message") ? cJSON_DetachItemFromObject(run, "message")
                                                              : end_of(json_str(run, "log")));
    struct pod *pod = pod_decode(pod_object, &err);
    if (!pod)
        fail_msg("%s", err.msg);
    const struct verdict v = exitcode_verdict(pod, &policy);
    add_failure(doc, &v);
    pod_free(pod);
    cJSON_AddItemToObject(doc, "cause", cJSON_DetachItemFromObject(run, "cause"));
    cJSON_AddItemToObject(doc, "log", cJSON_DetachItemFromObject(run, "log"));
    cJSON_Delete(run);
    return doc;
}

static void set_facts(const cJSON *doc, struct why_facts *f)
{
    const cJSON *gap;
    struct err err;

    *f = (struct why_facts){.pods = cJSON_GetObjectItem(doc, "pods"),
                            .events = cJSON_GetObjectItem(doc, "events"),
                            .claims = cJSON_GetObjectItem(doc, "claims"),
                            .nodes = cJSON_GetObjectItem(doc, "nodes"),
                            .log = json_str(doc, "log")};
    assert_true(clock_parse_rfc3339(json_str(doc, "now"), &f->now_ms));
    cJSON_ArrayForEach(gap, cJSON_GetObjectItem(doc, "gaps"))
        snprintf(f->gaps[f->n_gaps++], sizeof(f->gaps[0]), "%s", gap->valuestring);
    f->job = trainjob_decode(cJSON_Duplicate(cJSON_GetObjectItem(doc, "job"), true), &err);
    if (!f->job)
        fail_msg("%s", err.msg);
    assert_null(f->job->spec_error);
}

/* No more than a screen, and the cause in its first lines; what is wrapped there counts as one text. */
static void check_screen(const char *name, const char *screen, const char *cause)
{
    struct sv rest = sv_from(screen), line;
    char first[CAUSE_ROWS * (COLUMNS * 4 + 1) + 1] = "";
    int rows = 0;

    while (rest.len && sv_next(&rest, '\n', &line)) {
        if (shown_columns(line) > COLUMNS)
            fail_msg("%s: more than %d columns: %.*s", name, COLUMNS, (int)line.len, line.p);
        line = sv_trim(line);
        if (rows++ < CAUSE_ROWS)
            snprintf(first + strlen(first), sizeof(first) - strlen(first), "%s%.*s", rows > 1 ? " " : "",
                     (int)line.len, line.p);
    }
    if (rows >= ROWS)
        fail_msg("%s: %d rows:\n%s", name, rows, screen);
    if (!strstr(first, cause))
        fail_msg("%s: expected \"%s\" in the first lines:\n%s", name, cause, screen);
}

/* Uncut, what the cause says is within one of the first three lines; the launcher's failure block is nowhere. */
static void check_piped(const char *name, const char *all, const char *cause)
{
    const char *at = strstr(all, cause);
    int lines = 0;

    for (const char *p = all; p < at; p++)
        lines += *p == '\n';
    if (!at || lines >= CAUSE_ROWS || strstr(all, "Root Cause (first observed failure)"))
        fail_msg("%s: expected \"%s\" in the first lines, and no failure block:\n%s", name, cause, all);
}

static void check_safe(const char *name, const char *screen)
{
    for (const char *p = screen; *p; p++)
        if ((unsigned char)*p < 0x20 && *p != '\n')
            fail_msg("%s: a control character in:\n%s", name, screen);
}

static void run_case(void **state)
{
    const char *name = *state;
    cJSON *file = read_case(name);
    cleanup_json cJSON *doc = cJSON_HasObjectItem(file, "job") ? file : with_status(file);
    cleanup_buf struct buf screen = BUF_INIT(TEXT_MAX), all = BUF_INIT(TEXT_MAX), want = BUF_INIT(TEXT_MAX);
    struct why_facts facts;
    struct err err;
    char path[512];

    set_facts(doc, &facts);
    assert_int_equal(screen_print(&facts, (struct screen_size){COLUMNS, ROWS, false}, &screen, &err), 0);
    assert_int_equal(screen_print(&facts, (struct screen_size){.events = true}, &all, &err), 0);
    trainjob_free((struct trainjob *)(uintptr_t)facts.job);
    check_screen(name, buf_str(&screen), json_str(doc, "cause"));
    check_piped(name, buf_str(&all), json_str(doc, "cause"));
    check_safe(name, buf_str(&screen));
    check_safe(name, buf_str(&all));
    assert_non_null(strstr(buf_str(&screen), "\nDo:       "));
    snprintf(path, sizeof(path), "%s/%s/want.txt", golden, name);
    if (getenv("GOLDEN_UPDATE")) {
        assert_int_equal(fs_write_atomic(path, buf_str(&screen), screen.len, &err), 0);
        return;
    }
    if (fs_read(path, &want, &err) < 0)
        fail_msg("%s", err.msg);
    if (strcmp(buf_str(&want), buf_str(&screen)) != 0)
        fail_msg("%s: want\n%s\ngot\n%s", name, buf_str(&want), buf_str(&screen));
}

static int is_case(const struct dirent *d)
{
    return d->d_name[0] != '.' && d->d_name[0] != '_';
}

int main(void)
{
    static struct CMUnitTest tests[CASES_MAX];
    struct dirent **cases;
    golden = getenv("WHY_GOLDEN") ? getenv("WHY_GOLDEN") : GOLDEN;
    const int n = scandir(golden, &cases, is_case, alphasort);

    if (n < CASES_MIN || n > CASES_MAX) {
        fprintf(stderr, "%s: %d cases\n", golden, n);
        return 1;
    }
    for (int i = 0; i < n; i++)
        tests[i] = (struct CMUnitTest){
            .name = cases[i]->d_name, .test_func = run_case, .initial_state = cases[i]->d_name};
    const int failed = _cmocka_run_group_tests(golden, tests, (size_t)n, NULL, NULL);
    for (int i = 0; i < n; i++)
        free(cases[i]);
    free(cases);
    return failed;
}
