/* verb.c - kubectl ptj convert: read manifests of Kubeflow, print ours, list what is lost. */
#include "cli/convert/convert.h"
#include "cli/jobfile.h"
#include "cli/session.h"

#include "cli/say.h"
#include "cli/texts.h"
#include "common/yaml_write.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 8 << 20, SUBJECT_BYTES = 512, PLACE_BYTES = 512, LOST = 3 };

/* Each line begins with its place and a tab. */
static void print_lines(const struct buf *text)
{
    struct sv rest = {buf_str(text), text->len}, line;

    while (sv_next(&rest, '\n', &line)) {
        const char *tab = line.len ? memchr(line.p, '\t', line.len) : NULL;
        char place[PLACE_BYTES];
        if (!tab)
            continue;
        snprintf(place, sizeof(place), "%.*s", (int)(tab - line.p), line.p);
        say(place, "%.*s", (int)(line.len - (size_t)(tab + 1 - line.p)), tab + 1);
    }
}

struct result {
    bool one_file, torchkeeper;
    int converted, lost, refused;
};

static int convert_one(const cJSON *entry, const cJSON *entries, struct result *r, struct err *err)
{
    const cJSON *object = jobfile_object(entry);
    const char *name = json_meta(object, "name"), *prefix = json_meta(object, "generateName");
    cleanup_buf struct buf lost = BUF_INIT(TEXT_MAX);
    cleanup_buf struct buf yaml = BUF_INIT(TEXT_MAX);
    cleanup_json cJSON *job = NULL;
    char subject[SUBJECT_BYTES];
    struct err why;

    snprintf(subject, sizeof(subject), "%s %.253s", json_str(object, "kind"),
             name     ? name
             : prefix ? prefix
                      : "");
    struct losses losses = {
        .text = &lost, .place = jobfile_place(entry), .one_file = r->one_file, .subject = subject};
    if (convert_job(object, entries, r->torchkeeper, &losses, &job, &why) < 0) {
        r->refused++;
        say(jobfile_place(entry), "%s: not converted: %s", subject, why.msg);
        return 0;
    }
    print_lines(&lost);
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
        switch (convert_kind_of(object)) {
        case CONVERT_JOB:
            if (convert_one(entry, entries, r, err) < 0)
                return -1;
            break;
        case CONVERT_RUNTIME:
            break;
        case CONVERT_OTHER:
            say(jobfile_place(entry), "note: left out: %.60s is neither a PyTorchJob nor a TrainJob",
                kind ? kind : "an object without kind");
            break;
        }
    }
    return 0;
}

static int run(struct session *s, const struct args *a, struct err *err)
{
    cleanup_json cJSON *entries = cJSON_CreateArray();
    struct result r = {.one_file = a->n_operands == 1,
                       .torchkeeper = !strcmp(args_text(a, "launcher", ""), "Torchkeeper")};

    (void)s;
    for (int i = 0; i < a->n_operands; i++)
        if (jobfile_read(a->operands[i], entries, err) < 0)
            return -1;
    if (convert_all(entries, &r, err) < 0)
        return -1;
    if (!r.converted && !r.refused)
        return err_set(err, ERR_INVALID,
                       "expected a PyTorchJob (kubeflow.org/v1) or a TrainJob "
                       "(trainer.kubeflow.org/v1alpha1) in the files, found none");
    return r.refused ? 1 : r.lost ? LOST : 0;
}

static const struct option_row OPTIONS[] = {
    {"launcher", 0, "NAME", option_choice, .help = "whose torchrun: Image (default) or Torchkeeper",
     .words = OPTION_WORDS("Image", "Torchkeeper")},
    {0},
};

static const struct option_example EXAMPLES[] = {
    {"kubectl ptj convert pytorchjob.yaml > job.yaml", "The job to read, and what was lost on stderr."},
    {"kubectl ptj convert trainjob.yaml runtime.yaml | kubectl create -f -",
     "A TrainJob and its runtime, created at once."},
    {"kubectl ptj convert pytorchjob.yaml --launcher Torchkeeper > job.yaml",
     "With progress. To end runs that hang, add runPolicy.progressTimeoutSeconds to the output."},
    {"kubectl get pytorchjobs -o yaml | kubectl ptj convert - > jobs.yaml",
     "All PyTorchJobs of the namespace."},
    {0},
};

const struct verb VERB_CONVERT = {
    .name = "convert",
    .operands = "FILE...",
    .operands_min = 1,
    .operands_max = VERB_ANY,
    .words = VERB_FILES,
    .summary = "turn Kubeflow's PyTorchJobs and TrainJobs into training jobs",
    .about = convert_txt,
    .options = OPTIONS,
    .examples = EXAMPLES,
    .offline = true,
    .run = run,
};
