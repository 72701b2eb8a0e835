/* verb.c - kubectl ptj submit: make a job of a script or a folder. */
#include "cli/jobfile.h"
#include "cli/say.h"
#include "cli/session.h"
#include "cli/submit/manifest.h"
#include "cli/submit/patterns.h"
#include "cli/usage.h"

#include "common/redact.h"
#include "common/yaml_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const char WHO[] = "kubectl ptj submit";

enum { YAML_MAX = 8 << 20, BODY_MAX = 12 << 20, OPTIONS_MAX = 128 << 10 };

/* SECRET/KEY, as Kubernetes lets them be called: the length of SECRET. 0: it is none. */
static size_t secret_length(const char *text)
{
    static const char SIGNS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz0123456789-.";
    const size_t len = strspn(text, strchr(SIGNS, 'a'));
    const char *key = text + len + 1;

    return text[len] == '/' && key[0] && !key[strspn(key, SIGNS)] ? len : 0;
}

/* `form`: NAME=VALUE, NAME=SECRET/KEY or CLAIM:/PATH. Cut at the first "=" or ":". */
static int read_pairs(const struct args *a, const char *option, const char *form, struct arena *arena,
                      struct manifest_pair *ret, int *ret_n, struct err *err)
{
    const char sign = form[strcspn(form, "=:")];
    const bool secret = strcmp(option, "secret") == 0;
    const char *text;

    for (int i = 0; (text = args_each(a, option, i)); i++) {
        const char *at = strchr(text, sign), *key = NULL, *value = at ? at + 1 : NULL;
        const size_t len = secret && at ? secret_length(value) : 0;
        if (!at || at == text || (sign == ':' && value[0] != '/') || (secret && !len))
            return usage_wrong(err, "--%s: expected %s, got \"%.60s\"", option, form, text);
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
        return err_set(err, ERR_INVALID, "%.80s is a folder: say which of its files runs: -- FILE ARGS...",
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

static int read_options(const struct args *a, char name[static MANIFEST_NAME_MAX + 1], struct arena *arena,
                        struct submission *s, struct err *err)
{
    manifest_name(a->operands[0], name);
    s->name = args_text(a, "name", name);
    s->ns = args_text(a, "namespace", NULL);
    s->image = args_text(a, "image", "");
    s->cpu = args_text(a, "cpu", NULL);
    s->memory = args_text(a, "memory", NULL);
    s->launcher = args_text(a, "launcher", "Torchkeeper");
    s->nodes = 1;
    if (!s->image[0])
        return usage_wrong(err, "--image: expected the image that the script runs in");
    if (args_i64(a, "nodes", 1, TRAINJOB_PODS_MAX, &s->nodes, err) < 0 ||
        args_i64(a, "gpus", 0, 1024, &s->gpus, err) < 0 ||
        args_i64(a, "max-restarts", 0, INT32_MAX, &s->max_restarts, err) < 0 ||
        read_pairs(a, "env", "NAME=VALUE", arena, s->env, &s->n_env, err) < 0 ||
        read_pairs(a, "secret", "NAME=SECRET/KEY", arena, s->env, &s->n_env, err) < 0 ||
        read_pairs(a, "claim", "CLAIM:/PATH", arena, s->claims, &s->n_claims, err) < 0)
        return -1;
    return choose_program(a, s, err);
}

/* What leaves this machine, and what of it others may read. */
static void tell(const struct submission *s)
{
    const struct code *code = s->code;
    char ignored[64] = "";
    size_t bytes = 0;

    for (int i = 0; i < code->n_skipped; i++)
        say(WHO, "%s is left out: it is no regular file", code->skipped[i]);
    for (int i = 0; i < code->n; i++) {
        say(WHO, "takes %s (%zu bytes)", code->files[i].path, code->files[i].bytes);
        bytes += code->files[i].bytes;
    }
    if (code->n_ignored)
        snprintf(ignored, sizeof(ignored), "; .ptjignore leaves out %d names", code->n_ignored);
    if (code->folder)
        say(WHO, "takes %d files (%zu bytes)%s", code->n, bytes, ignored);
    for (int i = 0; i < s->n_env; i++)
        if (!s->env[i].key && s->env[i].value[0] && redact_names_secret(s->env[i].name))
            say(WHO,
                "--env %s: whoever may view the job can read its value; if that is a secret, put it into a "
                "Secret and use --secret %s=SECRET/KEY",
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

/* Delete the job that was made; what it has is deleted with it. Always -1. */
static int undo(struct session *session, const struct submission *s, const char *uid, struct err *err)
{
    cleanup_arena struct arena a = {0};
    const struct kube_request r = {.verb = KUBE_DELETE,
                                   .resource = &SESSION_JOBS,
                                   .ns = session->ns,
                                   .name = s->name,
                                   .body = kube_delete_options(&a, uid, NULL, "Background", -1)};
    struct err why;

    if (session_call(session, &r, NULL, &why) < 0)
        return err_wrap(err, "the job %s is left suspended and could not be deleted (%.60s)", s->name,
                        why.msg);
    return err_wrap(err, "the job %s is deleted again", s->name);
}

/* The job first: it owns the ConfigMap, and a job that is refused leaves nothing. It is suspended until its ConfigMap is there:
 * else somebody else could make one of that name with his code, and pods would run it. */
static int send(struct session *session, const struct submission *s, cJSON *job, struct err *err)
{
    cleanup_json cJSON *made = NULL;
    cleanup_buf struct buf what = BUF_INIT(OPTIONS_MAX);

    cJSON_AddTrueToObject(cJSON_GetObjectItemCaseSensitive(job, "spec"), "suspend");
    if (create(session, &SESSION_JOBS, job, &made, err) < 0)
        return err->code == 409 ? err_wrap(err, "take another --name than %s, or delete that job", s->name)
                                : -1;
    const char *uid = json_str(json_find(made, (const char *[]){"metadata", NULL}), "uid");
    cleanup_json cJSON *code = manifest_code(s, uid);
    if (create(session, &KUBE_CONFIGMAPS, code, NULL, err) < 0) {
        if (err->code == 409)
            err_wrap(err, "somebody else has made the ConfigMap of its code");
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
    static const char SIGNS[] = "bcdfghjklmnpqrstvwxz2456789";
    unsigned char bytes[5] = {0};

    (void)!getrandom(bytes, sizeof(bytes), 0); /* a name that is taken is refused anyway */
    ret[0] = '-';
    for (size_t i = 0; i < sizeof(bytes); i++)
        ret[i + 1] = SIGNS[bytes[i] % (sizeof(SIGNS) - 1)];
    ret[6] = '\0';
}

static int run(struct session *session, const struct args *a, struct err *err)
{
    cleanup_arena struct arena arena = {0};
    struct submission s = {0};
    struct code code;
    char name[MANIFEST_NAME_MAX + 1], suffix[7] = "";
    const char *include = "", *pattern;

    for (int i = 0; (pattern = args_each(a, "include", i)); i++)
        include = arena_printf(&arena, "%s%s\n", include, pattern);
    if (patterns_check(include, "--include", err) < 0)
        return usage_mark(err);
    if (code_read(a->operands[0], include, &arena, &code, err) < 0)
        return -1;
    s.code = &code;
    if (!args_has(a, "dry-run"))
        draw_suffix(suffix);
    s.suffix = suffix;
    if (read_options(a, name, &arena, &s, err) < 0)
        return -1;
    cleanup_json cJSON *job = manifest_job(&s);
    cleanup_trainjob struct trainjob *valid = jobfile_decode(job, "default", err);
    if (!valid) /* all of it comes from the options */
        return usage_mark(err);
    tell(&s);
    return args_has(a, "dry-run") ? print_yaml(&s, job, err) : send(session, &s, job, err);
}

static const struct option_row OPTIONS[] = {
    {"image", 0, "IMAGE", .help = "the image to run in (required)"},
    {"nodes", 0, "N", .help = "pods (default: 1)"},
    {"gpus", 0, "N", .help = "GPUs of each pod, and processes in it (default: none, and one process)"},
    {"name", 0, "NAME", .help = "of the job (default: made from the path)"},
    {"cpu", 0, "QUANTITY", .help = "CPUs of each pod, as \"4\" or \"500m\""},
    {"memory", 0, "QUANTITY", .help = "memory of each pod, as \"16Gi\""},
    {"env", 'e', "NAME=VALUE...", .help = "an environment variable; may be repeated"},
    {"secret", 0, "NAME=SECRET/KEY...", .help = "an environment variable out of a Secret; may be repeated"},
    {"claim", 0, "CLAIM:/PATH...", .help = "mount a PersistentVolumeClaim there; may be repeated"},
    {"max-restarts", 0, "N", .help = "how often torchrun starts failed processes anew (default: 0)"},
    {"launcher", 0, "NAME", .help = "whose torchrun: Torchkeeper (default) or Image",
     .words = OPTION_WORDS("Torchkeeper", "Image")},
    {"include", 0, "PATTERN...", .help = "take such files though they look like keys; may be repeated"},
    {"dry-run", 0, NULL, .help = "print the manifests, and create nothing; no cluster is needed"},
    {0},
};

static const struct option_example EXAMPLES[] = {
    {"kubectl ptj submit train.py --image pytorch/pytorch --gpus 8", "One pod with 8 GPUs and 8 processes."},
    {"kubectl ptj submit project --image pytorch/pytorch --nodes 2 --gpus 8 -- train.py --epochs 3",
     "A folder, on two nodes; train.py in it gets --epochs 3."},
    {"kubectl ptj submit train.py --image pytorch/pytorch --secret HF_TOKEN=hf/token --claim data:/data",
     "With a token out of a Secret and a PersistentVolumeClaim."},
    {"kubectl ptj submit train.py --image pytorch/pytorch --dry-run > job.yaml", "A manifest to begin with."},
    {0},
};

const struct verb VERB_SUBMIT = {
    .name = "submit",
    .operands = "SCRIPT|FOLDER [-- ARGS...]",
    .operands_min = 1,
    .operands_max = VERB_ANY,
    .words = VERB_FILES,
    .summary = "make a training job of a script or a folder",
    .about =
        "Creates a job whose pods run the script by torchrun, with these arguments. Of a folder the first of "
        "ARGS names the file "
        "that runs. What needs more than these options is a manifest: --dry-run prints one to begin with. "
        "For `kubectl ptj run`, which mounts no volume, its path of the program must be changed.\n"
        "The code goes into a ConfigMap, NAME-code-XXXXX, which belongs to the job and is deleted with it: "
        "at most 1 MiB and 256 files, mounted read-only at " MANIFEST_CODE_FOLDER
        ". The program starts in the "
        "image's own working folder. What is taken is listed on stderr. Names that begin with a dot, "
        "__pycache__, links, and what .ptjignore in the folder names are left out.\n"
        "A line of .ptjignore is a pattern: * stands for any characters but /, ? for one, [a-z] for one of a "
        "set, \\ takes the next as it is. With a / at the beginning or in the middle it is a path below the "
        "folder, else a name at any depth; with a / at the end it is that of folders. ! at the beginning "
        "takes "
        "a name again, # begins a comment, and the last line that fits decides. ** is refused.\n"
        "Whoever may view the namespace can read ConfigMaps and jobs. So a file is refused if it looks like "
        "a "
        "key by its name (id_*, *.pem, *.key, *.env, *kubeconfig*, *secret*, ...; but *.py and *.sh), or if "
        "a "
        "private key is in it; --include takes it. Tokens belong in Secrets: --secret HF_TOKEN=hf/token.\n"
        "The job is created suspended, and resumed when its ConfigMap is there.",
    .options = OPTIONS,
    .examples = EXAMPLES,
    .offline_with = "dry-run",
    .run = run,
};
