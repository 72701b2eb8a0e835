/* plancase.h - test helper: one golden case, from its files to the plan as a document.
 *
 * job.yaml   a PyTorchTrainingJob; `base` names files below _base/ that are merged first
 * pods.yaml  now, pods (short form, see podbrief.c), and what else the cache and the last pass know
 * want.yaml  what plan must say; of a status's conditions those that differ from the job's own (of a job that has
 *            none yet, from the ones that are False at first), and {type, gone: true} for one that is left out
 * Ownership: trees are freed with cJSON_Delete.
 */
#ifndef TK_TESTS_OPERATOR_PLANCASE_H
#define TK_TESTS_OPERATOR_PLANCASE_H

#include "common/json.h"

/* The job of the case in `folder`, with what the API server would have added to its metadata. */
cJSON *plancase_job(const char *folder, struct err *err) MUST_CHECK;

/* `folder` holds the case. The plan as it would stand in want.yaml. */
cJSON *plancase_run(const char *folder, struct err *err) MUST_CHECK;

#endif
