/* convert.h - turn manifests of Kubeflow (PyTorchJob of kubeflow.org/v1, TrainJob of trainer.kubeflow.org/v1alpha1) into
 * PyTorchTrainingJobs. Pure.
 *
 * Ownership: *ret is the caller's, to be freed with cJSON_Delete.
 * Errors:    ERR_INVALID: it cannot become a job, with the path and the reason. A lost field is no error: see losses.h.
 */
#ifndef TK_CLI_CONVERT_CONVERT_H
#define TK_CLI_CONVERT_CONVERT_H

#include "cli/convert/losses.h"

enum convert_kind {
    CONVERT_OTHER,   /* an object that this cannot convert */
    CONVERT_RUNTIME, /* a runtime that a TrainJob may refer to */
    CONVERT_JOB,     /* a PyTorchJob or a TrainJob */
};

enum convert_kind convert_kind_of(const cJSON *object);

/* `entries`: all that was given (jobfile.h), where a TrainJob finds its runtime. `torchkeeper`: with torchrunConfig.launcher:
 * Torchkeeper, where the job's commands allow it. */
int convert_job(const cJSON *object, const cJSON *entries, bool torchkeeper, struct losses *losses,
                cJSON **ret, struct err *err) MUST_CHECK;

#endif
