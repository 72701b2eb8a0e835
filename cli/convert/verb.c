/* verb.c - kubectl ptj convert: read manifests of Kubeflow, print ours, say what is lost. */
#include "cli/convert/convert.h"
#include "cli/files.h"
#include "cli/jobfile.h"
#include "cli/session.h"

#include "cli/say.h"
#include "common/yaml_write.h"

#include <stdio.h>

enum { TEXT_MAX = 8 << 20, SUBJECT_BYTES = 512, LOST = 3 };

/* Others' text, a line at a time. */
static void print_lines(const char *place, struct sv text)
{
    struct sv line;

    while (sv_next(&text, '\n', &line))
        if (line.len)
            say(place, "%.*s", (int)line.len, line.p);
}

struct result {
    int converted, lost, refused;
};

static int convert_one(const cJSON *entry, const cJSON *entries, struct result *r, struct err *err)
{
    const cJSON *object = jobfile_object(entry);
    const char *name = json_str(json_find(object, (const char *[]){"metadata", NULL}), "name");
    cleanup_buf struct buf lost = BUF_INIT(TEXT_MAX);
    cleanup_buf struct buf yaml = BUF_INIT(TEXT_MAX);
    cleanup_json cJSON *job = NULL;
    char subject[SUBJECT_BYTES];
    struct err why;

    snprintf(subject, sizeof(subject), "%s %.253s", json_str(object, "kind"), name ? name : "");
    struct losses losses = {.text = &lost, .subject = subject};
    if (convert_job(object, entries, &losses, &job, &why) < 0) {
        cleanup_buf struct buf text = BUF_INIT(2048);
        r->refused++;
        if (buf_printf(&text, err, "%s: not converted: %s", subject, why.msg) < 0)
            return -1;
        print_lines(jobfile_place(entry), (struct sv){buf_str(&text), text.len});
        return 0;
    }
    print_lines(jobfile_place(entry), (struct sv){buf_str(&lost), lost.len});
    if (yaml_write(job, &yaml, err) < 0)
        return -1;
    printf("%s%s", r->converted ? "---\n" : "", buf_str(&yaml));
    r->converted++;
    r->lost += losses.lost;
    return 0;
}

static int convert_all(const cJSON *entries, struct result *r, struct err *err)
{
    const cJSON *entry;

    cJSON_ArrayForEach(entry, entries)
    {
        const cJSON *object = jobfile_object(entry);
        const char *kind = json_str(object, "kind");
        char text[128];
        switch (convert_kind_of(object)) {
        case CONVERT_JOB:
            if (convert_one(entry, entries, r, err) < 0)
                return -1;
            break;
        case CONVERT_RUNTIME:
            break;
        case CONVERT_OTHER:
            snprintf(text, sizeof(text), "note: left out: %.60s is neither a PyTorchJob nor a TrainJob",
                     kind ? kind : "an object without kind");
            print_lines(jobfile_place(entry), sv_from(text));
            break;
        }
    }
    return 0;
}

static int run(struct session *s, const struct args *a, struct err *err)
{
    cleanup_json cJSON *entries = cJSON_CreateArray();
    struct result r = {0};

    (void)s;
    for (int i = 0; i < a->n_operands; i++)
        if (files_objects(a->operands[i], entries, err) < 0)
            return -1;
    if (convert_all(entries, &r, err) < 0)
        return -1;
    if (!r.converted && !r.refused)
        return err_set(err, ERR_INVALID,
                       "expected a PyTorchJob (kubeflow.org/v1) or a TrainJob "
                       "(trainer.kubeflow.org/v1alpha1) in the files, found none");
    return r.refused ? 1 : r.lost ? LOST : 0;
}

const struct verb VERB_CONVERT = {
    .name = "convert",
    .operands = "FILE...",
    .operands_min = 1,
    .operands_max = VERB_ANY,
    .words = VERB_FILES,
    .summary = "turn Kubeflow's PyTorchJobs and TrainJobs into training jobs",
    .about = "Reads YAML or JSON (- is stdin) and prints each PyTorchJob (kubeflow.org/v1) and TrainJob "
             "(trainer.kubeflow.org/v1alpha1) as a PyTorchTrainingJob. A TrainJob's runtime must be of torch "
             "and among the "
             "files; torch-distributed may be missing.\n"
             "What cannot be said is listed on stderr: file and line, field, reason. A line with \"note\" "
             "loses nothing. Objects "
             "of other kinds are left out.\n"
             "Programs keep starting torchrun themselves and get the variables that they get there (RANK, "
             "PET_NNODES, ...); a "
             "PyTorchJob with an elasticPolicy becomes an elastic job, whose torchrun the operator starts. "
             "Where a manifest is "
             "silent, the operator's own default holds: 3 counted restarts (runPolicy.backoffLimit).\n"
             "Exit status: 0 when all was said, 3 when fields were lost, 1 when a job could not be "
             "converted; the others are "
             "printed.",
    .offline = true,
    .run = run,
};
