/* trainjob.c - decode a PyTorchTrainingJob: metadata, spec or its error, status. */
#include "operator/api/trainjob.h"

#include "common/memory.h"
#include "common/sv.h"
#include "operator/api/pod.h"
#include "operator/api/workload.h"

#include <stdio.h>
#include <string.h>

const cJSON *trainjob_training_container(const cJSON *pod_spec)
{
    const cJSON *containers = json_child(pod_spec, "containers");
    const cJSON *c;

    if (!cJSON_IsArray(containers))
        return NULL;
    cJSON_ArrayForEach(c, containers)
    {
        const char *name = json_str(c, "name");
        if (name && (strcmp(name, "python") == 0 || strcmp(name, "pytorch") == 0))
            return c;
    }
    return containers->child;
}

/* An empty UID would match objects without an owner. */
static bool is_given(const char *text)
{
    return text && text[0];
}

static void read_queue(const cJSON *meta, struct job_queue *q)
{
    const cJSON *labels = json_child(meta, "labels");
    const char *name = json_str(labels, LABEL_QUEUE), *class = json_str(labels, LABEL_QUEUE_PRIORITY);
    const char *limit = json_str(labels, LABEL_QUEUE_MAX_TIME);
    const char *prebuilt = json_str(json_child(meta, "annotations"), QUEUE_PREBUILT);

    if (!is_given(name))
        return;
    prebuilt = is_given(prebuilt) ? prebuilt : json_str(labels, QUEUE_PREBUILT);
    q->prebuilt = is_given(prebuilt) ? prebuilt : NULL;
    q->name = name;
    q->priority_class = is_given(class) ? class : NULL;
    q->gated_by = json_str(json_child(meta, "annotations"), ANNOTATION_QUEUE_GATE);
    if (limit && !sv_i64(sv_from(limit), 1, INT32_MAX, &q->max_time_s))
        q->bad_max_time = limit;
}

static int read_metadata(struct trainjob *job, struct err *err)
{
    const cJSON *meta = json_child(job->tree, "metadata");

    job->ns = json_str(meta, "namespace");
    job->name = json_str(meta, "name");
    job->uid = json_str(meta, "uid");
    job->resource_version = json_str(meta, "resourceVersion");
    if (!is_given(job->ns) || !is_given(job->name) || !is_given(job->uid) || !is_given(job->resource_version))
        return err_set(err, ERR_INVALID,
                       TRAINJOB_KIND ": metadata without namespace, name, uid or resourceVersion");
    job->generation = json_i64(meta, "generation", 0);
    job->deleting = json_str(meta, "deletionTimestamp") != NULL;
    job->created_ms = decode_instant(meta, "creationTimestamp");
    read_queue(meta, &job->queue);
    return 0;
}

/* Names of children contain the job's name: they must be valid DNS labels and begin with a letter. */
static int check_names(const struct trainjob *job, struct err *err)
{
    size_t name = strlen(job->name);
    char child[TRAINJOB_NAME_MAX + 64];

    if (!decode_is_dns_label(job->name, TRAINJOB_NAME_MAX, true))
        return err_set(
            err, ERR_INVALID,
            "metadata.name: expected lower-case letters, digits and '-', beginning with a letter, got "
            "\"%.80s\"",
            job->name);
    if (name + strlen("-tensorboard") > TRAINJOB_NAME_MAX && job->spec.tensorboard.present)
        return err_set(err, ERR_INVALID, "metadata.name: \"%s-tensorboard\" is longer than %d characters",
                       job->name, TRAINJOB_NAME_MAX);
    for (int i = 0; i < job->spec.n_replica_specs; i++) {
        const struct replica_spec *r = &job->spec.replica_specs[i];
        snprintf(child, sizeof(child), "%s-%s-%d", job->name, r->type,
                 (job->spec.elastic.enabled ? job->spec.elastic.max : r->replicas) - 1);
        if (strlen(child) > TRAINJOB_NAME_MAX)
            return err_set(err, ERR_INVALID,
                           "spec.replicaSpecs[%d].type: the pod name \"%s\" is longer than %d "
                           "characters",
                           i, child, TRAINJOB_NAME_MAX);
    }
    if (name + strlen("-rdzv") > TRAINJOB_NAME_MAX)
        return err_set(err, ERR_INVALID, "metadata.name: \"%s-rdzv\" is longer than %d characters", job->name,
                       TRAINJOB_NAME_MAX);
    return 0;
}

static int check_queue(const struct job_queue *q, struct err *err)
{
    if (q->gated_by && strlen(q->gated_by) > WORKLOAD_GATES_BYTES)
        return err_set(err, ERR_INVALID, "metadata.annotations[" ANNOTATION_QUEUE_GATE "]: over %d bytes",
                       WORKLOAD_GATES_BYTES);
    if (q->prebuilt && strlen(q->prebuilt) > DECODE_NAME_BYTES)
        return err_set(err, ERR_INVALID, "metadata.annotations[" QUEUE_PREBUILT "]: over %d bytes",
                       DECODE_NAME_BYTES);
    return 0;
}

/* Whether the next attempt follows a pause; also true during the pause, so that the hash does not change at
 * its end. */
static bool resumes(const struct jobstatus *st)
{
    return st->resume_count > 0 || (jobstatus_pause_begun(st) && st->attempt > 0);
}

/* Hash the fields that affect a pod: a pod with another hash was created from another template. */
static void hash_spec(const struct trainjob *job, struct trainjob_spec *spec)
{
    uint64_t h = json_hash(json_child(json_child(job->tree, "spec"), "torchrunConfig"));

    for (int i = 0; i < spec->n_replica_specs; i++) {
        const struct replica_spec *r = &spec->replica_specs[i];
        h = h * 31 + json_hash(r->template);
        h = h * 31 + (uint64_t)(spec->elastic.enabled ? spec->elastic.max : r->replicas);
        for (const char *c = r->type; *c; c++)
            h = h * 31 + (unsigned char)*c;
    }
    if (spec->elastic.enabled)
        h = h * 31 + (uint64_t)spec->elastic.min;
    if (spec->debug.enabled)
        h = h * 31 + json_hash(spec->debug.tree) + 1;
    else if (resumes(&job->status) && spec->resume.n > 0)
        h = h * 31 + json_hash(spec->resume.tree);
    snprintf(spec->hash, sizeof(spec->hash), "%016llx", (unsigned long long)h);
}

static bool has_run(const struct jobstatus *st)
{
    return st->ran_attempt >= 0 || st->conditions[COND_RUNNING].state == COND_TRUE || jobstatus_finished(st);
}

/* Read runPolicy of an invalid spec: managedBy, and, if all of them are valid, the fields about the job's
 * end. */
static void keep_run_policy(const struct json_at *root, struct run_policy *ret)
{
    struct json_at spec = json_member(root, "spec");
    struct err ignored;

    if (trainjob_decode_run_policy(&spec, NULL, ret, &ignored) < 0)
        *ret = (struct run_policy){
            .cleanup_policy = CLEANUP_NONE,
            .managed_by = json_str(
                json_has(&spec, "managedBy") ? spec.node : json_child(spec.node, "runPolicy"), "managedBy")};
}

struct trainjob *trainjob_decode(cJSON *tree, struct err *err)
{
    struct trainjob *job = memory_must(calloc(1, sizeof(*job)));
    struct err spec_err;

    job->tree = tree;
    if (read_metadata(job, err) < 0) {
        trainjob_free(job);
        return NULL;
    }
    job->status_tree = json_child(tree, "status");
    jobstatus_decode(job->status_tree, &job->arena, &job->status);
    job->spec.lenient = has_run(&job->status);
    struct json_at root = json_root(tree, NULL);
    struct json_at spec = json_root(json_child(tree, "spec"), "spec");
    if (trainjob_decode_spec(&root, &job->arena, &job->spec, &spec_err) < 0 ||
        check_names(job, &spec_err) < 0 || check_queue(&job->queue, &spec_err) < 0 ||
        decode_numbers(&spec, &spec_err) < 0) {
        job->spec_error = arena_strdup(&job->arena, spec_err.msg);
        job->spec = (struct trainjob_spec){0};
        keep_run_policy(&root, &job->spec.run_policy);
    } else {
        hash_spec(job, &job->spec);
    }
    return job;
}

void trainjob_free(struct trainjob *job)
{
    if (!job)
        return;
    cJSON_Delete(job->tree);
    arena_release(&job->arena);
    free(job);
}
