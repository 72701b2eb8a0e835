/* notes.c - print on stderr what `logs` waits for. */
#include "cli/logs/notes.h"

#include "cli/say.h"
#include "common/text.h"

#include <stdio.h>
#include <string.h>

static void print_waiting(struct notes *n, const char *what, const char *reason, const char *message)
{
    char mark[DECODE_REASON_BYTES + 3];

    snprintf(mark, sizeof(mark), "/%s/", reason);
    if (strstr(n->printed, mark))
        return;
    text_add(n->printed, sizeof(n->printed), "%s", mark);
    say("kubectl ptj logs", "%s %s%s: %s%s%s", n->once ? "no log of" : "waiting for", what,
        n->once ? " yet" : "", reason, message && message[0] ? ": " : "", message ? message : "");
}

void notes_wait_for_pod(struct notes *n, const struct pod *pod)
{
    static const char *const STARTS[] = {"", "ContainerCreating", "PodInitializing"};
    const struct pod_container *c = pod->init.reason[0] ? &pod->init : &pod->training;
    const char *reason = c->reason;
    char what[DECODE_NAME_BYTES + 8];

    for (size_t i = 0; i < ARRAY_LEN(STARTS); i++)
        reason = strcmp(c->reason, STARTS[i]) == 0 ? "it is starting" : reason;
    snprintf(what, sizeof(what), "pod %s", pod->name);
    if (pod->unplaced == UNPLACED_UNSCHEDULABLE)
        print_waiting(n, what, "Unschedulable", pod->unplaced_by);
    else
        print_waiting(n, what, reason, c->message);
}

void notes_wait_for_job(struct notes *n, const struct jobstatus *st)
{
    const struct condition *running = &st->conditions[COND_RUNNING];
    const struct condition *invalid = &st->conditions[COND_INVALID_SPEC];
    const char *phase = st->phase == JOB_NONE ? "the job has no status yet" : job_phase_name(st->phase);

    print_waiting(n, n->once ? "the pods" : "pods", st->reason ? st->reason : phase,
                  invalid->state == COND_TRUE ? invalid->message : running->message);
}

void notes_forget(struct notes *n)
{
    n->printed[0] = '\0';
}
