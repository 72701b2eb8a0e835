/* jobfile.h - manifests in YAML files: the objects in them, and a PyTorchTrainingJob as the operator would read it. Pure, but for
 * jobfile_read (files.c).
 *
 * Ownership: lists and jobs are the caller's.
 * Errors:    ERR_INVALID "job.yaml:12: ..." or "spec.replicaSpecs[0]...: ..."; those of common/fsutil.h.
 */
#ifndef TK_CLI_JOBFILE_H
#define TK_CLI_JOBFILE_H

#include "operator/api/trainjob.h"

/* The UID of a job that is not in a cluster: this and its name. */
#define JOBFILE_UID "local-"

/* What stands for the five characters that the API server puts behind a generateName. */
#define JOBFILE_SUFFIX "local"

/* Append to the array `entries` each object of the file, those inside a List too. */
int jobfile_parse(const char *file, const char *text, size_t len, cJSON *entries, struct err *err) MUST_CHECK;

/* The same of the file at this path ("-": of stdin). */
int jobfile_read(const char *path, cJSON *entries, struct err *err) MUST_CHECK;

/* Of an entry: the object, and where it stands: "FILE:LINE". */
const cJSON *jobfile_object(const cJSON *entry);
const char *jobfile_place(const cJSON *entry);

/* Decode a copy of the object as a job that has just been created in `ns` if it names no namespace. ERR_INVALID also when its
 * spec is one that the operator would refuse. */
struct trainjob *jobfile_decode(const cJSON *object, const char *ns, struct err *err) MUST_CHECK;

#endif
