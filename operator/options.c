/* options.c - ptj-operator's flags: one table for parsing and for --help. */
#include "operator/options.h"

#include "common/nearest.h"
#include "operator/api/decode.h"

#include <string.h>

#define DEFAULT_TENSORBOARD_IMAGE "localhost/torchkeeper/tensorboard:dev"
#define DEFAULT_LAUNCHER_IMAGE "localhost/torchkeeper/launcher:dev"

enum { LEASE_MIN_S = 2, LEASE_MAX_S = 3600, HELP_COLUMN = 39 };

static const char HELP_HEAD[] =
    "NAME\n"
    "    ptj-operator - runs PyTorchTrainingJob resources (batch.tensorstack.dev/v1beta1) on Kubernetes\n"
    "\n"
    "SYNOPSIS\n"
    "    ptj-operator [--flag=value ...]\n"
    "\n"
    "DESCRIPTION\n"
    "    Watches PyTorchTrainingJobs and creates their pods, the Service through which the pods find each\n"
    "    other, and a TensorBoard where one is asked for; restarts by exit code, and keeps the status. In a\n"
    "    pod it uses the pod's service account, elsewhere --server, --ca-file and --token-file. It logs "
    "JSON\n"
    "    lines to standard error.\n"
    "    Two operators must not be responsible for the same job: one for the whole cluster and one for a\n"
    "    namespace must not overlap. Several with the same flags may run: one works, the others wait.\n"
    "\n"
    "FLAGS\n";

static const char HELP_TAIL[] =
    "\n"
    "SIGNALS\n"
    "    SIGTERM, SIGINT    finish the requests under way, give up the Lease and exit, within 5 seconds;\n"
    "                       jobs go on running\n"
    "\n"
    "EXIT STATUS\n"
    "    0 after a signal, 1 when the API server cannot be configured or an address not be bound, 2 for a\n"
    "    bad flag\n";

struct flag {
    const char *name;
    const char *value; /* what --help calls its value; NULL: it takes none */
    int (*set)(void *field, const struct flag *f, const char *value, struct err *err);
    size_t field; /* its place in struct options */
    const char *help;
};

static int set_bool(void *field, const struct flag *f, const char *value, struct err *err)
{
    bool no = value && strcmp(value, "false") == 0;

    if (value && !no && strcmp(value, "true") != 0)
        return err_set(err, ERR_INVALID, "--%s: expected true or false, got \"%s\"", f->name, value);
    *(bool *)field = !no;
    return 0;
}

static int set_text(void *field, const struct flag *f, const char *value, struct err *err)
{
    (void)f, (void)err;
    *(const char **)field = value;
    return 0;
}

/* Empty is as if not given, so that a manifest can pass on a variable that may be unset. */
static int set_file(void *field, const struct flag *f, const char *value, struct err *err)
{
    return set_text(field, f, value[0] ? value : NULL, err);
}

/* Empty: as for a file. */
static int set_namespace(void *field, const struct flag *f, const char *value, struct err *err)
{
    if (value[0] && !decode_is_dns_label(value, 63, false))
        return err_set(err, ERR_INVALID, "--%s: expected the name of a namespace, got \"%s\"", f->name,
                       value);
    return set_file(field, f, value, err);
}

static int set_image(void *field, const struct flag *f, const char *value, struct err *err)
{
    if (!value[0])
        return err_set(err, ERR_INVALID, "--%s: expected an image, got nothing", f->name);
    return set_text(field, f, value, err);
}

static int set_lease_s(void *field, const struct flag *f, const char *value, struct err *err)
{
    int64_t n;

    if (!sv_i64(sv_from(value), LEASE_MIN_S, LEASE_MAX_S, &n))
        return err_set(err, ERR_INVALID, "--%s: expected an integer %d..%d, got \"%s\"", f->name, LEASE_MIN_S,
                       LEASE_MAX_S, value);
    *(int *)field = (int)n;
    return 0;
}

static int set_log_level(void *field, const struct flag *f, const char *value, struct err *err)
{
    struct nearest near = nearest_to(sv_from(value));
    char hint[NEAREST_HINT_BYTES];

    if (log_level_parse(value, field))
        return 0;
    nearest_offer_all(&near, (const char *const[]){"debug", "info", "warn", "error", NULL});
    return err_set(err, ERR_INVALID, "--%s: expected debug, info, warn or error, got \"%s\"%s", f->name,
                   value, nearest_hint(&near, "", hint));
}

#define FIELD(f) offsetof(struct options, f)

static const struct flag FLAGS[] = {
    {"namespace", "NAME", set_namespace, FIELD(ns), "only jobs of this namespace (default: all namespaces)"},
    {"server", "URL", set_file, FIELD(api.server),
     "the API server, outside a cluster: https://HOST:PORT, or of this machine itself\n"
     "http://127.0.0.1:PORT or unix:SOCKET, as `kubectl proxy` serves (default: the\n"
     "pod's)"},
    {"ca-file", "FILE", set_file, FIELD(api.ca_file),
     "the authority of its certificate (default: the system's)"},
    {"token-file", "FILE", set_file, FIELD(api.token_file),
     "who we are; both files are read again every minute\n(default: no token is sent)"},
    {"metrics-bind-address", "ADDR", set_text, FIELD(metrics_address),
     "where /metrics is served; 0 turns it off (default :8080)"},
    {"health-probe-bind-address", "ADDR", set_text, FIELD(health_address),
     "where /healthz and /readyz are served; 0 turns it off (default :8081)"},
    {"leader-elect", "BOOL", set_bool, FIELD(leader_elect),
     "work only while holding the Lease torchkeeper-operator, so that several may run\n(default true)"},
    {"leader-elect-namespace", "NAME", set_namespace, FIELD(leader_elect_ns),
     "where that Lease is (default: POD_NAMESPACE, else the pod's own, else default)"},
    {"leader-elect-lease-duration", "S", set_lease_s, FIELD(lease_duration_s),
     "an operator that leads and did not renew the Lease for so many seconds is\n"
     "replaced by another one, 2 to 3600 (default 15)"},
    {"tensorboard", "BOOL", set_bool, FIELD(tensorboard),
     "make TensorBoards; false needs no permission for Deployments, and reports\n"
     "Disabled for jobs with a tensorboardSpec (default true)"},
    {"tensorboard-image", "IMAGE", set_image, FIELD(tensorboard_image),
     "for jobs whose tensorboardSpec names none\n(default " DEFAULT_TENSORBOARD_IMAGE ")"},
    {"launcher-image", "IMAGE", set_image, FIELD(launcher_image),
     "for jobs with torchrunConfig.launcher Torchkeeper\n(default " DEFAULT_LAUNCHER_IMAGE ")"},
    {"isolate-jobs", "BOOL", set_bool, FIELD(isolate_jobs),
     "give each job a NetworkPolicy that lets in its own pods only, and to port 29402\nthis operator's "
     "(default true)"},
    {"scraper-namespace", "NAME", set_namespace, FIELD(scraper_ns),
     "the pods of this namespace may reach port 29402, too (default: none)"},
    {"job-keys", "BOOL", set_bool, FIELD(job_keys),
     "give each job of several nodes with torchrun a random key in a Secret, by which\nits launchers know "
     "each other (default true)"},
    {"log-level", "LEVEL", set_log_level, FIELD(log_level), "debug, info, warn or error (default info)"},
    {"version", NULL, set_bool, FIELD(version), "print the version"},
    {"help", NULL, set_bool, FIELD(help), "print this"},
};

void options_help(FILE *out)
{
    fputs(HELP_HEAD, out);
    for (const struct flag *f = FLAGS; f < FLAGS + ARRAY_LEN(FLAGS); f++) {
        int column = fprintf(out, "    --%s%s%s", f->name, f->value ? "=" : "", f->value ? f->value : "");
        for (const char *line = f->help; *line; column = 0) {
            int len = (int)strcspn(line, "\n");
            fprintf(out, "%*s%.*s\n", HELP_COLUMN - column, "", len, line);
            line += len + (line[len] == '\n');
        }
    }
    fputs(HELP_TAIL, out);
}

static const struct flag *find(struct sv name)
{
    for (const struct flag *f = FLAGS; f < FLAGS + ARRAY_LEN(FLAGS); f++)
        if (sv_eq(name, f->name))
            return f;
    return NULL;
}

static int no_such_flag(const char *word, struct sv name, struct err *err)
{
    struct nearest near = nearest_to(name);
    char hint[NEAREST_HINT_BYTES];

    for (size_t i = 0; i < ARRAY_LEN(FLAGS); i++)
        nearest_offer(&near, FLAGS[i].name);
    return err_set(err, ERR_INVALID, "%.80s: unknown flag%s (ptj-operator --help)", word,
                   nearest_hint(&near, "--", hint));
}

int options_parse(struct options *o, int argc, char **argv, struct err *err)
{
    *o = (struct options){
        .metrics_address = ":8080",
        .health_address = ":8081",
        .tensorboard_image = DEFAULT_TENSORBOARD_IMAGE,
        .launcher_image = DEFAULT_LAUNCHER_IMAGE,
        .leader_elect = true,
        .isolate_jobs = true,
        .job_keys = true,
        .tensorboard = true,
        .lease_duration_s = 15,
        .log_level = LOG_INFO,
    };
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (word[0] != '-')
            return err_set(err, ERR_INVALID, "%s: expected flags only (ptj-operator --help)", word);
        size_t dashes = word[1] == '-' ? 2 : 1;
        const struct sv name = {word + dashes, strcspn(word + dashes, "=")};
        const struct flag *f = dashes == 2 ? find(name) : NULL;
        const char *value = word[dashes + name.len] ? word + dashes + name.len + 1 : NULL;
        if (!f)
            return no_such_flag(word, name, err);
        if (value && !f->value)
            return err_set(err, ERR_INVALID, "%.80s: --%s takes no value", word, f->name);
        if (!value && f->set != set_bool && !(value = argv[++i]))
            return err_set(err, ERR_INVALID, "%s: expected a value", word);
        if (f->set((char *)o + f->field, f, value, err) < 0)
            return -1;
    }
    return 0;
}
