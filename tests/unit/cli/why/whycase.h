/* whycase.h - test helper: the cases of tests/golden/why, a file each.
 *
 * _base.yaml  what a case stands over: now, job, pod ($ is its index), container (the training container's status), event
 * NAME.yaml   cause (what the first three lines must contain), and what differs from the base: now, job, pods, events; besides
 *             claims, nodes, budgets, log, gaps as they are. Merged as RFC 7386 specifies, but conditions stand by their type, and their
 *             messages as sentences of tests/golden/plan/_sentences.yaml; `failures` are lastFailure alone unless given
 * run-*.yaml  of a recorded run (e2e/failures/record.py): cause, exitCode, message (of the launcher, if it left one) and log; the
 *             rest is that of _recorded.yaml, and the job's status is made of the operator's own verdict
 * _causes.yaml  messages that need no screen: of each a part of the headline that its cause has (test_screen.c)
 * want        in each, last: the screen. What many screens say stands there by its key in _sentences.yaml
 */
#ifndef TK_TESTS_CLI_WHYCASE_H
#define TK_TESTS_CLI_WHYCASE_H

#include "sentences.h"

struct whycase_folder {
    const char *path;
    struct sentences said;    /* of screens */
    struct sentences planned; /* of the plan, in conditions */
};

int whycase_open(const char *path, const char *plan, struct whycase_folder *ret, struct err *err) MUST_CHECK;
void whycase_close(struct whycase_folder *f);

/* The case as the API server and the kubelet would tell it: `cause`, and what struct why_facts has. Free with cJSON_Delete. */
cJSON *whycase_read(const struct whycase_folder *f, const char *name, struct err *err) MUST_CHECK;

/* The screen as a want has it; the entries it names are marked as produced. */
const char *whycase_fold(struct whycase_folder *f, const char *screen, struct arena *a);

const char *whycase_want(const struct whycase_folder *f, const char *name, struct arena *a,
                         struct err *err) MUST_CHECK;
int whycase_write_want(const struct whycase_folder *f, const char *name, const char *want,
                       struct err *err) MUST_CHECK;

#endif
