/* whyjson.h - the answer of `kubectl ptj why` as one JSON object. Pure.
 *
 * time, namespace, name, uid      of the answer, and of the job
 * phase, reason, attempt, ready, restarts  as in the job's status; absent before the operator has written one
 * summary, detail                 sentences: the cause, or how the job is; how far it is, or which pod it waits for
 * cause                           what keeps the job from going on; absent: nothing does
 *   kind                          Job, PodsRefused, PodWaiting or PodFailed
 *   reason                        one CamelCase word, as in status.reason, lastFailure.reason or a container's state
 *   subject                       the object in question: a PVC, a Secret, a quota
 *   message, line                 as it was reported; of a failure the line that names the error
 *   log                           of a failure: the last lines, an array
 *   pod, node, container, rank, exitCode, signal, attempt, since, otherPods
 *   initContainer, pending        true: the container is an init container; the operator has not judged the failure yet
 * next                            operator: what it does next. user: what the user can do
 * pods                            name, node, phase, attempt, and cause: the same fields, without the log
 * failures                        earlier ones, as status.failures, the newest first
 * notes, notRead                  sentences: what else to know; what could not be read
 * Sentences (summary, detail, next, notes, notRead) may change from version to version; the other fields are for scripts.
 */
#ifndef TK_CLI_WHY_WHYJSON_H
#define TK_CLI_WHY_WHYJSON_H

#include "cli/why/finding.h"

/* Free with cJSON_Delete. What is not known is absent. */
cJSON *whyjson_of(const struct why_facts *f);

#endif
