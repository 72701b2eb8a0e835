/* verb.c - kubectl ptj submit: make a job of a script or a folder. */
#include "cli/jobfile.h"
#include "cli/logs/follow.h"
#include "cli/logs/logs.h"
#include "cli/names.h"
#include "cli/say.h"
#include "cli/session.h"
#include "cli/shown.h"
#include "cli/span.h"
#include "cli/submit/manifest.h"
#include "cli/submit/patterns.h"
#include "cli/texts.h"
#include "cli/usage.h"

#include "common/contract.h"
#include "common/redact.h"
#include "common/sv.h"
#include "common/text.h"
#include "common/yaml_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const char WHO[] = "kubectl ptj submit";

enum {
    YAML_MAX = 8 << 20,
    BODY_MAX = 12 << 20,
    OPTIONS_MAX = 128 << 10,
    PROCS_MAX = 4096,
    SENTENCE_BYTES = 900
};

#define CLAIM_FORM "CLAIM:/PATH"

/* SECRET/KEY: the length of SECRET; 0: it is no such text. */
static size_t secret_length(const char *text)
{
    const size_t len = strcspn(text, "/");

    return text[len] && names_is_object((struct sv){text, len}) && names_is_key(text + len + 1) ? len : 0;
}

/* An option's value for a message, without what may be a secret. */
static const char *without_secret(const char *option, const char *text, struct arena *arena)
{
    const bool has_secret = strcmp(option, "env") == 0 || strcmp(option, "secret") == 0;
    const size_t len = has_secret ? strcspn(text, "=") : strlen(text);

    return arena_printf(arena, "%.60s%s", shown_name(arena, arena_strndup(arena, text, len)),
                        text[len] ? "=..." : "");
}

static int check_utf8(const struct args *a, struct arena *arena, struct err *err)
{
    const char *text;

    for (const struct option_row *o = a->verb->options; o->name; o++)
        for (int i = 0; (text = args_each(a, o->name, i)); i++)
            if (!text_is_utf8(sv_from(text)))
                return usage_wrong(err, "--%s: expected UTF-8, got \"%s\"", o->name,
                                   without_secret(o->name, text, arena));
    for (int i = 1; i < a->n_operands; i++)
        if (!text_is_utf8(sv_from(a->operands[i])))
            return usage_wrong(err, "ARGS: expected UTF-8, got \"%.60s\"", shown_name(arena, a->operands[i]));
    return 0;
}

/* `form`: NAME=VALUE, LABEL=VALUE, NAME=SECRET/KEY or CLAIM:/PATH. Cut at the first "=" or ":". */
static int read_pairs(const struct args *a, const char *option, const char *form, struct arena *arena,
                      struct manifest_pair *ret, int *ret_n, struct err *err)
{
    const char separator = form[strcspn(form, "=:")];
    const bool secret = strcmp(option, "secret") == 0;
    const char *text;

    for (int i = 0; (text = args_each(a, option, i)); i++) {
        const char *at = strchr(text, separator), *key = NULL, *value = at ? at + 1 : NULL;
        const size_t len = secret && at ? secret_length(value) : 0;
        if (!at || at == text || (separator == ':' && value[0] != '/') || (secret && !len))
            return usage_wrong(err, "--%s: expected %s, got \"%s\"", option, form,
                               without_secret(option, text, arena));
        if (*ret_n == MANIFEST_LIST_MAX)
            return usage_wrong(err, "--%s: more than %d", option, MANIFEST_LIST_MAX);
        if (secret) {
            key = value + len + 1;
            value = arena_strndup(arena, value, len);
        }
        ret[(*ret_n)++] = (struct manifest_pair){arena_strndup(arena, text, (size_t)(at - text)), value, key};
    }
    return 0;
}

/* A script runs itself; of a folder the first argument is the program. */
static int choose_program(const struct args *a, struct submission *s, struct err *err)
{
    s->args = a->operands + 1;
    s->n_args = a->n_operands - 1;
    if (!s->code->folder) {
        s->program = s->code->files[0].path;
        return 0;
    }
    if (s->n_args < 1)
        return err_set(err, ERR_INVALID, "%.80s is a folder: name the file to run: -- FILE ARGS...",
                       a->operands[0]);
    for (int i = 0; i < s->code->n; i++)
        if (strcmp(s->code->files[i].path, s->args[0]) == 0) {
            s->program = s->args[0];
            s->args++;
            s->n_args--;
            return 0;
        }
    return err_set(err, ERR_INVALID, "%.80s has no file %.80s (links and hidden files are left out)",
                   a->operands[0], s->args[0]);
}

static int read_selectors(const struct args *a, struct arena *arena, struct submission *s, struct err *err)
{
    if (read_pairs(a, "node-selector", "LABEL=VALUE", arena, s->selectors, &s->n_selectors, err) < 0)
        return -1;
    for (int i = 0; i < s->n_selectors; i++) {
        const struct manifest_pair *label = &s->selectors[i];
        if (!names_is_label(label->name, label->value))
            return usage_wrong(err, "--node-selector: expected a label of nodes, got \"%.60s=%.60s\"",
                               label->name, label->value);
        for (int k = 0; k < i; k++)
            if (strcmp(s->selectors[k].name, label->name) == 0)
                return usage_wrong(err, "--node-selector: %.60s is given twice", label->name);
    }
    return 0;
}

/* An absolute path without "." and double slashes. */
static const char *plain_path(const char *path, struct arena *arena)
{
    struct sv rest = sv_from(path), name;
    const char *ret = "";

    while (sv_next(&rest, '/', &name))
        if (name.len && !sv_eq(name, "."))
            ret = arena_printf(arena, "%s/%.*s", ret, (int)name.len, name.p);
    return ret;
}

static int read_claims(const struct args *a, struct arena *arena, struct submission *s, struct err *err)
{
    if (read_pairs(a, "claim", CLAIM_FORM, arena, s->claims, &s->n_claims, err) < 0)
        return -1;
    for (int i = 0; i < s->n_claims; i++) {
        const struct manifest_pair *c = &s->claims[i];
        const char *path = plain_path(c->value, arena);
        bool taken = !strcmp(path, MANIFEST_CODE_FOLDER) || !strcmp(path, MANIFEST_SHARED_MEMORY);
        for (int k = 0; k < i; k++)
            taken |= !strcmp(path, plain_path(s->claims[k].value, arena));
        if (!names_is_object(sv_from(c->name)) || strchr(c->value, ':'))
            return usage_wrong(err, "--claim: expected " CLAIM_FORM ", got \"%.60s:%.60s\"", c->name,
                               c->value);
        if (taken)
            return usage_wrong(err, "--claim: %.60s: another volume is mounted there", c->value);
    }
    return 0;
}

static int read_progress_timeout(const struct args *a, int64_t *ret_s, struct err *err)
{
    const char *text = args_text(a, "progress-timeout", NULL);

    if (!text)
        return 0;
    if (span_parse("progress-timeout", text, ret_s, err) < 0)
        return -1;
    if (*ret_s < CONTRACT_PROGRESS_TIMEOUT_MIN_S || *ret_s > CONTRACT_PROGRESS_TIMEOUT_MAX_S)
        return usage_wrong(err, "--progress-timeout: expected %ds to %dd, got \"%.60s\"",
                           CONTRACT_PROGRESS_TIMEOUT_MIN_S, CONTRACT_PROGRESS_TIMEOUT_MAX_S / 86400, text);
    return 0;
}

/* Options that few jobs need. */
static int read_extras(const struct args *a, struct arena *arena, struct submission *s, struct err *err)
{
    const char *tensorboard = args_text(a, "tensorboard", NULL);
    const char *slash = tensorboard ? strchr(tensorboard, '/') : NULL;

    s->pull_secret = args_text(a, "pull-secret", NULL);
    if (s->pull_secret && !names_is_object(sv_from(s->pull_secret)))
        return usage_wrong(err, "--pull-secret: expected the name of a Secret, got \"%.60s\"",
                           s->pull_secret);
    if (tensorboard) {
        const size_t len = slash ? (size_t)(slash - tensorboard) : strlen(tensorboard);
        if (!names_is_object((struct sv){tensorboard, len}))
            return usage_wrong(err, "--tensorboard: expected CLAIM or CLAIM/FOLDER, got \"%.60s\"",
                               tensorboard);
        s->tensorboard =
            (struct manifest_pair){arena_strndup(arena, tensorboard, len), slash ? slash + 1 : "", NULL};
    }
    if (read_progress_timeout(a, &s->progress_timeout_s, err) < 0)
        return -1;
    if (s->progress_timeout_s && strcmp(s->launcher, "Torchkeeper") != 0)
        return usage_wrong(err, "--progress-timeout needs --launcher Torchkeeper");
    return read_selectors(a, arena, s, err);
}

/* "." and ".." have the names of the folders that they are. */
static const char *path_with_name(const char *path, struct arena *arena)
{
    struct sv p = sv_from(path);

    while (sv_ends(p, "/"))
        p.len--;
    if (!sv_eq(p, ".") && !sv_eq(p, "..") && !sv_ends(p, "/.") && !sv_ends(p, "/.."))
        return path;
    char *real = realpath(path, NULL);
    const char *ret = real ? arena_strdup(arena, real) : path;
    free(real);
    return ret;
}

static int read_options(const struct args *a, char name[static MANIFEST_NAME_MAX + 1], struct arena *arena,
                        struct submission *s, struct err *err)
{
    manifest_name(path_with_name(a->operands[0], arena), name);
    s->name = args_text(a, "name", name);
    s->ns = args_text(a, "namespace", NULL);
    s->image = args_text(a, "image", "");
    s->cpu = args_text(a, "cpu", NULL);
    s->memory = args_text(a, "memory", NULL);
    s->launcher = args_text(a, "launcher", "Torchkeeper");
    s->nodes = args_i64(a, "nodes", 1);
    s->gpus = args_i64(a, "gpus", 0);
    s->procs = args_i64(a, "procs", s->gpus ? s->gpus : 1);
    s->max_restarts = args_i64(a, "max-restarts", 0);
    if (!s->image[0])
        return usage_wrong(err, "--image: expected the image that the script runs in");
    if (args_has(a, "follow") && s->nodes > FOLLOW_PODS_MAX)
        return usage_wrong(err,
                           "--follow prints the logs of %d pods at most: leave it out, and choose pods by "
                           "`kubectl ptj logs %.63s --rank`",
                           FOLLOW_PODS_MAX, s->name);
    if (read_pairs(a, "env", "NAME=VALUE", arena, s->env, &s->n_env, err) < 0 ||
        read_pairs(a, "secret", "NAME=SECRET/KEY", arena, s->env, &s->n_env, err) < 0 ||
        read_claims(a, arena, s, err) < 0)
        return -1;
    return read_extras(a, arena, s, err);
}

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

/* What leaves this machine. */
static void tell_files(const struct code *code, struct arena *a)
{
    char ignored[64] = "";
    size_t bytes = 0;

    for (int i = 0; i < code->n_skipped && i < CODE_FILES_MAX; i++)
        say(WHO, "leaves out %s: %s", shown_name(a, code->skipped[i].path), code->skipped[i].why);
    if (code->n_skipped > CODE_FILES_MAX)
        say(WHO, "leaves out %d more names of these kinds", code->n_skipped - CODE_FILES_MAX);
    for (int i = 0; i < code->n; i++) {
        const struct code_file *f = &code->files[i];
        say(WHO, "takes %s (%zu byte%s)", shown_name(a, f->path), f->bytes, plural(f->bytes));
        bytes += f->bytes;
    }
    if (code->n_ignored)
        snprintf(ignored, sizeof(ignored), "; .ptjignore leaves out %d name%s", code->n_ignored,
                 plural((size_t)code->n_ignored));
    if (code->folder)
        say(WHO, "takes %d file%s (%zu byte%s)%s", code->n, plural((size_t)code->n), bytes, plural(bytes),
            ignored);
}

/* Values in the job that look like secrets. */
static void tell_secrets(const struct submission *s)
{
    for (int i = 0; i < s->n_env; i++)
        if (!s->env[i].key && s->env[i].value[0] && redact_names_secret(s->env[i].name))
            say(WHO,
                "--env %s: everyone who may view the job can read its value; for a secret value use "
                "--secret %s=SECRET/KEY",
                s->env[i].name, s->env[i].name);
}

static int print_yaml(const struct submission *s, const cJSON *job, struct err *err)
{
    cleanup_json cJSON *code = manifest_code(s, NULL);
    cleanup_buf struct buf text = BUF_INIT(YAML_MAX);

    if (yaml_write(code, &text, err) < 0 || buf_puts(&text, "---\n", err) < 0 ||
        yaml_write(job, &text, err) < 0)
        return -1;
    fwrite(text.data, 1, text.len, stdout);
    return 0;
}

static int create(struct session *session, const struct kube_resource *resource, const cJSON *object,
                  cJSON **ret, struct err *err)
{
    cleanup_buf struct buf body = BUF_INIT(BODY_MAX);

    if (json_write(object, &body, err) < 0)
        return -1;
    const struct kube_request r = {.verb = KUBE_CREATE,
                                   .resource = resource,
                                   .ns = session->ns,
                                   .field_manager = "kubectl-ptj",
                                   .body = {body.data, body.len}};
    return session_call(session, &r, ret, err);
}

/* Delete the job that was created, and with it what it owns. Always -1. */
static int undo(struct session *session, const struct submission *s, const char *uid, struct err *err)
{
    cleanup_arena struct arena a = {0};
    const struct kube_request r = {.verb = KUBE_DELETE,
                                   .resource = &SESSION_JOBS,
                                   .ns = session->ns,
                                   .name = s->name,
                                   .body = kube_delete_options(&a, uid, NULL, false)};
    struct err why;

    if (session_call(session, &r, NULL, &why) < 0)
        return err_wrap(err, "the job %s remains, suspended, since it could not be deleted (%.60s)", s->name,
                        why.msg);
    return err_wrap(err, "the job %s has been deleted", s->name);
}

/* Say what may be left of a create that failed. Always -1. */
static int not_created(const struct session *session, const struct submission *s, struct err *err)
{
    const struct err was = *err;

    if (was.code == 409)
        return err_wrap(err, "choose another --name than %s, or delete that job", s->name);
    /* The answer may be lost, not the request; the job of that name may be another one. */
    if ((!was.code || was.code >= 500) && !strstr(was.msg, "connection refused") &&
        !strstr(was.msg, "failed calling webhook"))
        return err_set(err, was.kind,
                       "%.*s; the API server may have created the job %s, suspended and without code: see "
                       "kubectl get ptj %s -n %s%s",
                       (int)text_head(was.msg, SENTENCE_BYTES), was.msg, s->name, s->name, session->ns,
                       buf_str(&session->options));
    return -1;
}

/* The job first: it owns the ConfigMap, and a job that the API server refuses leaves nothing. It is suspended until its ConfigMap
 * exists: else another user could create one of that name, and the pods would run that code. */
static int send(struct session *session, const struct submission *s, cJSON *job, struct err *err)
{
    cleanup_json cJSON *made = NULL;
    cleanup_buf struct buf what = BUF_INIT(OPTIONS_MAX);

    cJSON_AddTrueToObject(json_child(job, "spec"), "suspend");
    if (create(session, &SESSION_JOBS, job, &made, err) < 0)
        return not_created(session, s, err);
    const char *uid = json_meta(made, "uid");
    cleanup_json cJSON *code = manifest_code(s, uid);
    if (create(session, &KUBE_CONFIGMAPS, code, NULL, err) < 0) {
        if (err->code == 409)
            err_wrap(err, "another user has created a ConfigMap of that name");
        return undo(session, s, uid, err);
    }
    if (buf_printf(&what, err, "submitted: kubectl ptj watch %s%s%s%s", s->name, s->ns ? " -n " : "",
                   s->ns ? s->ns : "", buf_str(&session->options)) < 0 ||
        session_patch_job(session, s->name, "{\"spec\":{\"suspend\":false}}", buf_str(&what), err) < 0)
        return undo(session, s, uid, err);
    return 0;
}

static void draw_suffix(char ret[static 7])
{
    static const char CHARACTERS[] = "bcdfghjklmnpqrstvwxz2456789";
    unsigned char bytes[5] = {0};

    (void)!getrandom(bytes, sizeof(bytes), 0); /* the API server refuses a name that exists */
    ret[0] = '-';
    for (size_t i = 0; i < sizeof(bytes); i++)
        ret[i + 1] = CHARACTERS[bytes[i] % (sizeof(CHARACTERS) - 1)];
    ret[6] = '\0';
}

/* What is submitted. All but the names of files comes from the command line. */
struct prepared {
    struct arena arena;
    struct submission s;
    struct code code;
    char name[MANIFEST_NAME_MAX + 1], suffix[7];
    cJSON *job;
};

static void prepared_release(struct prepared *p)
{
    cJSON_Delete(p->job);
    arena_release(&p->arena);
}

#define cleanup_prepared __attribute__((cleanup(prepared_release)))

#define LIMITS "spec.replicaSpecs[0].template.spec.containers[0].resources.limits."

/* An error in a field that is an option's value names the option. */
static int check_job(const cJSON *job, struct err *err)
{
    static const struct {
        const char *option, *field;
    } FIELDS[] = {{"name", "metadata.name: "}, {"cpu", LIMITS "cpu: "}, {"memory", LIMITS "memory: "}};
    cleanup_trainjob struct trainjob *valid = jobfile_decode(job, "default", err);

    if (valid)
        return 0;
    const struct err was = *err;
    for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++)
        if (sv_starts(sv_from(was.msg), FIELDS[i].field))
            return usage_wrong(err, "--%s: %s", FIELDS[i].option, was.msg + strlen(FIELDS[i].field));
    return usage_mark(err);
}

static int prepare(struct prepared *p, const struct args *a, struct err *err)
{
    const char *include = "", *pattern;

    if (check_utf8(a, &p->arena, err) < 0)
        return -1;
    for (int i = 0; (pattern = args_each(a, "include", i)); i++)
        include = arena_printf(&p->arena, "%s%s\n", include, pattern);
    if (args_has(a, "follow") && args_has(a, "dry-run"))
        return usage_wrong(err, "--follow and --dry-run exclude each other");
    if (patterns_check(include, "--include", err) < 0)
        return usage_mark(err);
    if (read_options(a, p->name, &p->arena, &p->s, err) < 0)
        return -1;
    if (code_read(a->operands[0], include, &p->arena, &p->code, err) < 0) {
        snprintf(err->msg, sizeof(err->msg), "%s", shown_name(&p->arena, err->msg)); /* a file's name */
        return -1;
    }
    p->s.code = &p->code;
    p->s.suffix = p->suffix;
    if (!args_has(a, "dry-run"))
        draw_suffix(p->suffix);
    if (choose_program(a, &p->s, err) < 0)
        return -1;
    p->job = manifest_job(&p->s);
    return check_job(p->job, err);
}

static int check(const struct args *a, struct err *err)
{
    cleanup_prepared struct prepared p = {0};

    return prepare(&p, a, err);
}

static int run(struct session *session, const struct args *a, struct err *err)
{
    cleanup_prepared struct prepared p = {0};

    if (prepare(&p, a, err) < 0)
        return -1;
    tell_files(&p.code, &p.arena);
    tell_secrets(&p.s);
    if (args_has(a, "dry-run"))
        return print_yaml(&p.s, p.job, err);
    if (send(session, &p.s, p.job, err) < 0)
        return -1;
    return args_has(a, "follow") ? logs_follow(session, p.s.name, err) : 0;
}

static const struct option_row OPTIONS[] = {
    {"image", 0, "IMAGE", .help = "the image to run in (required)"},
    {"nodes", 0, "N", option_integer, .min = 1, .max = TRAINJOB_PODS_MAX,
     .help = "how many pods (default: 1)"},
    {"gpus", 0, "N", option_integer, .max = 1024, .help = "GPUs of each pod (default: none)"},
    {"procs", 0, "N", option_integer, .min = 1, .max = PROCS_MAX,
     .help = "processes in each pod (default: one per GPU, or one)"},
    {"name", 0, "NAME", .help = "the name of the job (default: from the path)"},
    {"cpu", 0, "QUANTITY", .help = "CPUs of each pod, as \"4\" or \"500m\""},
    {"memory", 0, "QUANTITY", .help = "memory of each pod, as \"16Gi\""},
    {"env", 'e', "NAME=VALUE...", .help = "an environment variable; repeatable"},
    {"secret", 0, "NAME=SECRET/KEY...", .help = "an environment variable from a Secret; repeatable"},
    {"claim", 0, "CLAIM:/PATH...", .help = "mount a PersistentVolumeClaim there; repeatable"},
    {"tensorboard", 0, "CLAIM[/FOLDER]",
     .help = "run a TensorBoard on the logs in this PersistentVolumeClaim"},
    {"node-selector", 0, "LABEL=VALUE...", .help = "run on nodes with this label; repeatable"},
    {"pull-secret", 0, "NAME", .help = "the Secret with the password of the image's registry"},
    {"progress-timeout", 0, "TIME",
     .help = "restart the job when no rank shows output for 10m, 1h30m (at least 30s)"},
    {"max-restarts", 0, "N", option_integer, .max = INT32_MAX,
     .help = "how often torchrun restarts failed processes (default: 0)"},
    {"launcher", 0, "NAME", option_choice, .help = "whose torchrun: Torchkeeper (default) or Image",
     .words = OPTION_WORDS("Torchkeeper", "Image")},
    {"include", 0, "PATTERN...", .help = "take such files though they look like keys; repeatable"},
    {"follow", 'f', NULL, .help = "then print the logs until the job ends"},
    {"dry-run", 0, NULL, .help = "print the manifests, create nothing; needs no cluster"},
    {0},
};

static const struct option_example EXAMPLES[] = {
    {"kubectl ptj submit train.py --image pytorch/pytorch --gpus 8 --follow",
     "One pod with 8 GPUs, and its logs."},
    {"kubectl ptj submit project --image pytorch/pytorch --nodes 2 --gpus 8 -- train.py --epochs 3",
     "A folder, on two nodes; train.py in it gets --epochs 3."},
    {"kubectl ptj submit train.py --image pytorch/pytorch --secret HF_TOKEN=hf/token --claim data:/data",
     "With a token from a Secret and a PersistentVolumeClaim."},
    {"kubectl ptj submit train.py --image pytorch/pytorch --progress-timeout 10m --claim data:/data "
     "--tensorboard data/runs",
     "A hang of 10 minutes ends in a restart; TensorBoard shows the folder runs of the PersistentVolumeClaim "
     "data."},
    {"kubectl ptj submit train.py --image pytorch/pytorch --dry-run > job.yaml", "A manifest to begin with."},
    {0},
};

const struct verb VERB_SUBMIT = {
    .name = "submit",
    .operands = "SCRIPT|FOLDER [-- ARGS...]",
    .operands_min = 1,
    .operands_max = VERB_ANY,
    .words = VERB_FILES,
    .summary = "create a training job from a script or a folder",
    .about = submit_txt,
    .options = OPTIONS,
    .examples = EXAMPLES,
    .offline_with = "dry-run",
    .check = check,
    .run = run,
};
