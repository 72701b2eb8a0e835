/* test_acts.c - the user acts, the lease is lost, or somebody begins to write the job all the time, while a request is on its
 * way, or after any change of an object of a queued job: the API server has carried it out, the watches send the change, and only then its answer comes. Each request of each
 * story in turn. The job ends as it ends without that; a job that was deleted leaves nothing, in the cluster or in the operator's
 * memory.
 *
 * usage: test_acts [scenario [trouble]]
 */
#include "converge.h"
#include "faults.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

/* ---- what users do */

static int turns;

static bool is_there(struct lab *l)
{
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);

    return job != NULL;
}

static void pause_job(struct lab *l, const struct scenario *s)
{
    (void)s;
    if (is_there(l))
        lab_put(l, LAB_JOB, "{'spec':{'suspend':true}}");
}

static bool has_ended(struct lab *l)
{
    return !is_there(l) || lab_status_is(l, LAB_JOB, "phase", "Succeeded") ||
           lab_status_is(l, LAB_JOB, "phase", "Failed");
}

/* Once no pod is left. True: it continues. */
static bool resume(struct lab *l)
{
    if (has_ended(l))
        return true;
    if (!lab_status_is(l, LAB_JOB, "phase", "Paused") || fake_count(l->server, LAB_PODS) > 0)
        return false;
    return fake_put(l->server, LAB_JOB, "{'spec':{'suspend':false}}");
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
        lab_put(l, LAB_JOB, "{'status':null}");
}

/* To two pods, from as many as the story has come to; that is the last of its steps. */
static void scale_job(struct lab *l, const struct scenario *s)
{
    (void)s;
    if (!is_there(l))
        return;
    lab_put(l, LAB_JOB, "{'spec':{'elastic':{'expectedReplicas':2}}}");
    l->step = 3;
}

/* ---- what others do to the Workload */

static bool path_of_workload(struct lab *l, char *path, size_t size)
{
    cleanup_json cJSON *w = lab_workload(l);

    if (w)
        snprintf(path, size, LAB_WORKLOADS "/%s", json_meta(w, "name"));
    return w != NULL;
}

static void edit_workload(struct lab *l, const char *json)
{
    char path[256];

    if (path_of_workload(l, path, sizeof(path)) && !lab_workload_is(l, "Finished", "True"))
        lab_put(l, path, json);
}

static void evict(struct lab *l, const struct scenario *s)
{
    (void)s;
    if (lab_workload_is(l, "QuotaReserved", "True") && !lab_workload_is(l, "Finished", "True"))
        lab_evict(l, "Preempted");
}

/* Kueue would free the quota at once, whatever runs. */
static void deactivate(struct lab *l, const struct scenario *s)
{
    turns = 0;
    evict(l, s);
    edit_workload(l, "{'spec':{'active':false}}");
}

static bool activate(struct lab *l)
{
    if (++turns < 40)
        return false;
    edit_workload(l, "{'spec':{'active':true}}");
    return true;
}

static void delete_workload(struct lab *l, const struct scenario *s)
{
    char path[256];

    (void)s;
    if (path_of_workload(l, path, sizeof(path)))
        (void)fake_delete(l->server, path);
}

/* With its finalizer, by force. */
static void strip_workload(struct lab *l, const struct scenario *s)
{
    char path[256];

    (void)s;
    if (path_of_workload(l, path, sizeof(path)))
        (void)fake_remove(l->server, path);
}

static void shrink_workload(struct lab *l, const struct scenario *s)
{
    (void)s;
    edit_workload(l,
                  "{'spec':{'podSets':[{'name':'node','count':1,'template':{'spec':{'containers':[]}}}]}}");
}

/* As others with that permission may; Kueue frees the quota. */
static void finish_workload(struct lab *l, const struct scenario *s)
{
    cleanup_json cJSON *w = lab_workload(l);

    (void)s;
    if (w && !lab_workload_is(l, "Finished", "True"))
        lab_workload_condition(l, "Finished", "True", "ByHand", "somebody has ended it");
}

/* Then nothing holds it when it is deleted, and its quota is free at once. */
static void strip_finalizer(struct lab *l, const struct scenario *s)
{
    edit_workload(l, "{'metadata':{'finalizers':null}}");
    delete_workload(l, s);
}

static void evict_and_delete(struct lab *l, const struct scenario *s)
{
    evict(l, s);
    delete_workload(l, s);
}

static void evict_and_pause(struct lab *l, const struct scenario *s)
{
    evict(l, s);
    pause_job(l, s);
}

/* Of the job's Workload: its place in the queue changes while it waits, is being admitted, runs or ends. */
static void raise_priority(struct lab *l, const struct scenario *s)
{
    (void)s;
    if (is_there(l))
        lab_put(l, LAB_JOB, "{'metadata':{'labels':{'" LABEL_QUEUE_PRIORITY "':'high'}}}");
}

static void move_queue(struct lab *l, const struct scenario *s)
{
    (void)s;
    if (is_there(l))
        lab_put(l, LAB_JOB, "{'metadata':{'labels':{'" LABEL_QUEUE "':'other'}}}");
}

/* Kueue decides from that. */
static void ask_for_more(struct lab *l, const struct scenario *s)
{
    (void)s;
    if (is_there(l))
        lab_put(
            l, LAB_JOB,
            "{'spec':{'replicaSpecs':[{'type':'node','replicas':2,'restartPolicy':'ExitCode','template':{'"
            "spec':{'containers':[{'name':'pytorch','image':'i','resources':{'limits':{'example.org/"
            "gpu':'1'}}}]}}}]}}");
}

/* Or its LocalQueue is deleted: nothing is admitted for a while. */
static void stop_queue(struct lab *l, const struct scenario *s)
{
    (void)s;
    turns = 0;
    l->queues.full = true;
}

static bool open_queue(struct lab *l)
{
    l->queues.full = ++turns < 40;
    return !l->queues.full;
}

static void unlabel_workload(struct lab *l, const struct scenario *s)
{
    (void)s;
    edit_workload(l, "{'metadata':{'labels':null}}");
}

static void leave_queue(struct lab *l, const struct scenario *s)
{
    (void)s;
    turns = 0;
    if (is_there(l))
        lab_put(l, LAB_JOB, "{'metadata':{'labels':null}}");
}

static bool enter_queue(struct lab *l)
{
    if (++turns < 40 && is_there(l))
        return false;
    if (is_there(l))
        lab_put(l, LAB_JOB, "{'metadata':{'labels':{'" LABEL_QUEUE "':'team'}}}");
    return true;
}

/* ---- what becomes of the lease, and what others do */

enum { WRITER_TURNS = 120 };

/* Its answer never comes: what it was sent for is forgotten. */
static void lose_lease(struct lab *l, const struct scenario *s)
{
    (void)s;
    lab_lead(l, false);
    turns = 0;
}

static bool lead_again(struct lab *l)
{
    if (++turns < 10)
        return false;
    lab_lead(l, true);
    return true;
}

/* Two terms between two turns of the loop. */
static void lead_at_once(struct lab *l, const struct scenario *s)
{
    (void)s;
    lab_lead(l, false);
    lab_lead(l, true);
}

static void lose_lease_and_delete(struct lab *l, const struct scenario *s)
{
    lose_lease(l, s);
    delete_job(l, s);
}

static void lose_lease_and_clear(struct lab *l, const struct scenario *s)
{
    lose_lease(l, s);
    clear_status(l, s);
}

static void begin_to_write(struct lab *l, const struct scenario *s)
{
    (void)l, (void)s;
    turns = 0;
}

static bool writes_no_more(struct lab *l)
{
    char body[96];

    if (++turns > WRITER_TURNS || !is_there(l))
        return true;
    snprintf(body, sizeof(body), "{'metadata':{'annotations':{'example.com/n':'%d'}}}", turns);
    return turns % 3 == 0 && !fake_put(l->server, LAB_JOB, body);
}

/* ---- how it has to end */

static bool leaves_nothing(const char *left)
{
    return strstr(left, "gone, ") == left && strstr(left, "; 0 pods, 0 services, 0 deployments");
}

/* "MasterSucceeded, Succeeded": how often it restarted depends on the time. */
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
    if (t->act == delete_job || t->act == lose_lease_and_delete)
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

/* Stories that cannot run from the beginning again: they count the pods of any job of this name, tell of pods that go
 * only by force, which nobody uses on those of a job that is gone, or their first attempt ends by what the user did once. */
static bool is_another_story(const struct converge_row *row)
{
    static const char *const ONE_JOB[] = {"replica", "template", "force-delete", NULL};
    static const char *const ONE_STATUS[] = {"replica",          "template",  "pause-resume",
                                             "pod-removed",      "preempted", "preempted-with-checks",
                                             "workload-deleted", NULL};
    static const char *const ONE_ATTEMPT[] = {"replica", NULL};
    const struct trouble *t = row->trouble;
    const char *const *names = t->act == pause_job                                        ? ONE_ATTEMPT
                               : t->act == clear_status || t->act == lose_lease_and_clear ? ONE_STATUS
                                                                                          : ONE_JOB;

    if (t->act == lose_lease || t->act == lead_at_once || t->act == begin_to_write)
        return false;
    return t->act != scale_job && is_one_of(row->scenario->name, names);
}

/* False: the story ended before that moment. */
static bool act_at(struct converge_row *row, const struct trouble *t, const struct ending *untroubled,
                   int *acted)
{
    struct ending e;

    converge_run(row->scenario, t, &e);
    if (!e.struck || !e.acted)
        return e.struck;
    ++*acted;
    if (!is_well(row, &e, untroubled))
        fail_msg(
            "%s, %s at request %d, change %d: %s\nof %zu jobs something is remembered; without trouble: %s",
            row->scenario->name, t->name, t->fault.request, t->act_at, e.left, e.remembered,
            untroubled->left);
    return true;
}

/* Each change of any object of a queued job is another such moment: Kueue's reservation, its admission, each pod's start and
 * end. */
static void sweep(void **state)
{
    struct converge_row *row = *state;
    struct ending untroubled = converge_untroubled(row->scenario, 1);
    const int step = row->step * (faults_in_full() ? 1 : 3);
    struct trouble t = *row->trouble;
    int acted = 0, at_changes = 0;

    if (is_another_story(row))
        skip();
    row->cases++;
    for (int n = 1 + row->before; n <= untroubled.requests + 10; n += step) {
        t.fault.request = n;
        if (n > 0 && !act_at(row, &t, &untroubled, &acted))
            break;
    }
    t.fault = (struct fake_fault_plan){0};
    t.act_at = row->before;
    t.ghosts = t.act == delete_job || t.act == recreate_job; /* a create may be on its way */
    do
        t.act_at += step;
    while (row->scenario->queued && act_at(row, &t, &untroubled, &at_changes));
    row->passed++;
    print_message("%s, %s: %d runs, %d at changes\n", row->scenario->name, row->trouble->name, acted,
                  at_changes);
}

#define LATE .class = "F11", .fault = {.fault = FAKE_LATE_BODY}

int main(int argc, char **argv)
{
    static const struct trouble TROUBLES[] = {
        {"pause", LATE, .act = pause_job, .acted = resume},
        {"delete", LATE, .act = delete_job},
        {"recreate", LATE, .act = recreate_job},
        {"clear-status", LATE, .act = clear_status, .leave_out = FAKE_RULES_NO_COUNTERS},
        {"scale", LATE, .act = scale_job, .only = "scale"},
        {"lose-lease", LATE, .act = lose_lease, .acted = lead_again},
        {"lead-at-once", LATE, .act = lead_at_once},
        {"lose-lease-delete", LATE, .act = lose_lease_and_delete, .acted = lead_again},
        {"lose-lease-clear-status", LATE, .act = lose_lease_and_clear, .acted = lead_again,
         .leave_out = FAKE_RULES_NO_COUNTERS},
        {"writer", LATE, .act = begin_to_write, .acted = writes_no_more},
        {"evict", LATE, .act = evict, .only = "preempted"},
        {"deactivate", LATE, .act = deactivate, .acted = activate, .only = "preempted"},
        {"delete-workload", LATE, .act = delete_workload, .only = "preempted"},
        {"strip-workload", LATE, .act = strip_workload, .only = "preempted", .unqueued = true},
        {"shrink-workload", LATE, .act = shrink_workload, .only = "preempted"},
        {"finish-workload", LATE, .act = finish_workload, .only = "preempted", .unqueued = true},
        {"strip-finalizer", LATE, .act = strip_finalizer, .only = "preempted", .unqueued = true},
        {"evict-and-delete", LATE, .act = evict_and_delete, .only = "preempted"},
        {"evict-and-pause", LATE, .act = evict_and_pause, .acted = resume, .only = "preempted"},
        {"raise-priority", LATE, .act = raise_priority, .only = "preempted"},
        {"move-queue", LATE, .act = move_queue, .only = "preempted"},
        {"ask-for-more", LATE, .act = ask_for_more, .only = "preempted"},
        {"stop-queue", LATE, .act = stop_queue, .acted = open_queue, .only = "preempted"},
        {"unlabel-workload", LATE, .act = unlabel_workload, .only = "preempted"},
        {"leave-queue", LATE, .act = leave_queue, .acted = enter_queue, .only = "preempted",
         .unqueued = true},
    };

    return CONVERGE_MAIN(argc, argv, TROUBLES, sweep);
}
