/* runtime.c - find the runtime of a TrainJob. */
#include "cli/convert/parts.h"

#include "cli/jobfile.h"

#include <string.h>

/* What Trainer 2.3 installs under this name. */
#define KNOWN_NAME "torch-distributed"
#define KNOWN_IMAGE "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime"

static const char KNOWN[] =
    "{\"kind\":\"ClusterTrainingRuntime\",\"metadata\":{\"name\":\"" KNOWN_NAME
    "\"},\"spec\":{\"mlPolicy\":{\"numNodes\":1,"
    "\"torch\":{}},\"template\":{\"spec\":{\"replicatedJobs\":[{\"name\":\"node\",\"template\":{\"metadata\":"
    "{\"labels\":{"
    "\"trainer.kubeflow.org/"
    "trainjob-ancestor-step\":\"trainer\"}},\"spec\":{\"template\":{\"spec\":{\"containers\":[{"
    "\"name\":\"node\",\"image\":\"" KNOWN_IMAGE "\"}]}}}}}]}}}}";

static const cJSON *among(const cJSON *entries, const char *kind, const char *name)
{
    const cJSON *entry;

    cJSON_ArrayForEach(entry, entries)
    {
        const cJSON *o = jobfile_object(entry);
        const char *own = json_meta(o, "name");
        if (convert_kind_of(o) == CONVERT_RUNTIME && own && strcmp(json_str(o, "kind"), kind) == 0 &&
            strcmp(own, name) == 0)
            return o;
    }
    return NULL;
}

const cJSON *convert_find_runtime(struct conversion *c, const struct json_at *ref, struct err *err)
{
    static const struct losses_field FIELDS[] = {{"name", NULL}, {"kind", NULL}, {"apiGroup", NULL}, {0}};
    const char *name = NULL;
    const char *kind = "ClusterTrainingRuntime";

    losses_members(c->losses, ref, FIELDS);
    if (json_expect_object(ref, err) < 0 || json_get_str(ref, "name", &name, err) < 0 ||
        json_get_str(ref, "kind", &kind, err) < 0)
        return NULL;
    if (!name) {
        json_err(ref, err, "expected the name of a runtime");
        return NULL;
    }
    const cJSON *found = among(c->entries, kind, name);
    if (found)
        return found;
    if (strcmp(kind, "ClusterTrainingRuntime") != 0 || strcmp(name, KNOWN_NAME) != 0) {
        json_err(ref, err,
                 "the %.40s \"%.60s\" is not in the files: give its manifest too (kubectl get "
                 "%.40s %.60s -o yaml)",
                 kind, name, kind, name);
        return NULL;
    }
    losses_note(c->losses, ref,
                KNOWN_NAME
                " is not in the files: taken as Trainer 2.3 installs it, with the image " KNOWN_IMAGE
                " for a trainer without one");
    c->known_runtime = json_parse(KNOWN, strlen(KNOWN), err);
    return c->known_runtime;
}
