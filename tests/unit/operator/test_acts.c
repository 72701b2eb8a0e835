/* test_acts.c - the user acts while a request is on its way: the API server has carried it out, the watches tell what the
 * user did, and only then its answer comes. Each request of each story in turn; and of each start after a crash the first
 * live read of the job. The job ends as it ends without that; of one that is gone nothing is left, in the cluster or in
 * the operator's memory.
 *
 * usage: test_acts [scenario [trouble]]
 */
#include "converge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faults.h"

#include <string.h>

/* ---- what users do */

static bool is_there(struct lab *l)
{
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);

    return job != NULL;
}

static void pause_job(struct lab *l, const struct scenario *s)
{
    (void)s;
    if (is_there(l))
        assert_true(fake_put(l->server, LAB_JOB, "{\"spec\":{\"suspend\":true}}"));
}

static bool has_ended(struct lab *l)
{
    return !is_there(l) || lab_status_is(l, LAB_JOB, "phase", "Succeeded") ||
           lab_status_is(l, LAB_JOB, "phase", "Failed");
}

/* Once no pod is left. True: it goes on. */
static bool resume(struct lab *l)
{
    if (has_ended(l))
        return true;
    if (!lab_status_is(l, LAB_JOB, "phase", "Paused") || fake_count(l->server, LAB_PODS) > 0)
        return false;
    return fake_put(l->server, LAB_JOB, "{\"spec\":{\"suspend\":false}}");
}

static void delete_job(struct lab *l, const struct scenario *s)
{
    (void)s;
    (void)fake_remove(l->server, LAB_JOB);
}

static void recreate_job(struct lab *l, const struct scenario *s)
{
    (void)fake_remove(l->server, LAB_JOB);
    converge_submit(l, s);
    l->step = 0;
    l->hold_master = false;
}

static void clear_status(struct lab *l, const struct scenario *s)
{
    (void)s;
    if (is_there(l))
        assert_true(fake_put(l->server, LAB_JOB, "{\"status\":null}"));
}

/* To two pods, from as many as the story has come to; that is the last of its steps. */
static void scale_job(struct lab *l, const struct scenario *s)
{
    (void)s;
    if (!is_there(l))
        return;
    assert_true(fake_put(l->server, LAB_JOB, "{\"spec\":{\"elastic\":{\"expectedReplicas\":2}}}"));
    l->step = 3;
}

/* ---- how it has to end */

static bool leaves_nothing(const char *left)
{
    return strstr(left, "gone, ") == left && strstr(left, "; 0 pods, 0 services, 0 deployments");
}

/* "MasterSucceeded, Succeeded": how often it began anew depends on when. */
static bool ends_alike(const char *got, const char *want)
{
    size_t n = (size_t)(strstr(want, " attempt=") - want);

    return strncmp(got, want, n) == 0;
}

static bool is_well(const struct converge_row *row, const struct ending *e, const struct ending *untroubled)
{
    const struct trouble *t = row->trouble;

    if (leaves_nothing(e->left) && e->remembered > 0)
        return false;
    if (t->act == delete_job)
        return leaves_nothing(e->left);
    if (t->act == recreate_job)
        return strcmp(e->left, untroubled->left) == 0;
    return ends_alike(e->left, untroubled->left);
}

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(name, *names) != 0)
        names++;
    return *names != NULL;
}

/* Stories that cannot be told from the beginning again: they count the pods of any job of this name, tell of pods that go
 * only by force, which nobody uses on those of a job that is gone, or their first attempt ends by what the user did once. */
static bool is_another_story(const struct converge_row *row)
{
    static const char *const ONE_JOB[] = {"replica", "template", "force-delete", NULL};
    static const char *const ONE_STATUS[] = {"replica", "template", "pause-resume", "pod-removed", NULL};
    static const char *const ONE_ATTEMPT[] = {"replica", NULL};
    const struct trouble *t = row->trouble;
    const char *const *names = t->act == pause_job      ? ONE_ATTEMPT
                               : t->act == clear_status ? ONE_STATUS
                                                        : ONE_JOB;

    return t->act != scale_job && is_one_of(row->scenario->name, names);
}

static void sweep(void **state)
{
    struct converge_row *row = *state;
    struct ending untroubled = converge_untroubled(row->scenario, 1);
    bool crashes = row->trouble->crash_at > 0;
    int acted = 0;

    if (is_another_story(row))
        skip();
    row->cases++;
    for (int n = 1 + row->before; n <= untroubled.requests + 10;
         n += row->step * (faults_in_full() ? 1 : 3)) {
        struct trouble t = *row->trouble;
        struct ending e;
        *(crashes ? &t.crash_at : &t.fault.request) = n;
        if (n <= 0)
            continue;
        converge_run(row->scenario, &t, &e);
        if (!e.struck && !crashes)
            break;
        if (!e.acted)
            continue;
        acted++;
        if (!is_well(row, &e, &untroubled))
            fail_msg("%s, %s at request %d: %s\nof %zu jobs something is remembered; without trouble: %s",
                     row->scenario->name, t.name, n, e.left, e.remembered, untroubled.left);
    }
    row->passed++;
    print_message("%s, %s: %d runs\n", row->scenario->name, row->trouble->name, acted);
}

#define LATE .class = "F11", .fault = {.fault = FAKE_LATE_BODY}
#define READ_AFTER_A_CRASH                                                                                   \
    .class = "F11", .crash_at = 1,                                                                           \
    .then = {.request = 1, .method = "GET", .path_part = TRAINJOB_PLURAL "/j", .fault = FAKE_LATE_BODY}

int main(int argc, char **argv)
{
    static const struct trouble TROUBLES[] = {
        {"pause", LATE, .act = pause_job, .acted = resume},
        {"delete", LATE, .act = delete_job},
        {"recreate", LATE, .act = recreate_job},
        {"clear-status", LATE, .act = clear_status, .leave_out = FAKE_RULES_NO_COUNTERS},
        {"scale", LATE, .act = scale_job, .only = "scale"},
        {"read-pause", READ_AFTER_A_CRASH, .act = pause_job, .acted = resume},
        {"read-delete", READ_AFTER_A_CRASH, .act = delete_job},
        {"read-recreate", READ_AFTER_A_CRASH, .act = recreate_job},
        {"read-clear-status", READ_AFTER_A_CRASH, .act = clear_status, .leave_out = FAKE_RULES_NO_COUNTERS},
        {"read-scale", READ_AFTER_A_CRASH, .act = scale_job, .only = "scale"},
    };

    return CONVERGE_MAIN(argc, argv, TROUBLES, sweep);
}
