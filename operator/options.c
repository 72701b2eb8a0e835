/* options.c - ptj-operator's options: one table for parsing and for --help. */
#include "operator/options.h"

#include "operator/api/decode.h"
#include "operator/api/pod.h"

#define DEFAULT_TENSORBOARD_IMAGE "localhost/torchkeeper/tensorboard:dev"
#define LEASE_NAME "torchkeeper-operator"
#define DEFAULT_LAUNCHER_IMAGE "localhost/torchkeeper/launcher:dev"

static const char HELP_HEAD[] =
    "NAME\n"
    "    ptj-operator - runs PyTorchTrainingJob resources (batch.tensorstack.dev/v1beta1) on Kubernetes\n"
    "\n"
    "SYNOPSIS\n"
    "    ptj-operator [--option=value ...]\n"
    "\n"
    "DESCRIPTION\n"
    "    Watches PyTorchTrainingJobs. Creates their pods, the Service through which the pods find each\n"
    "    other, and a TensorBoard for each job with spec.tensorboardSpec. Restarts jobs by exit code and\n"
    "    updates their status. In a pod it uses the pod's service account, elsewhere --server, --ca-file\n"
    "    and --token-file. It logs JSON lines to standard error.\n"
    "    Two operators must not be responsible for the same job: one for the whole cluster and one for a\n"
    "    namespace must not overlap. Several with the same options may run: one works, the others wait.\n"
    "\n"
    "OPTIONS\n";

static const char HELP_TAIL[] =
    "\n"
    "SIGNALS\n"
    "    SIGTERM, SIGINT    finish the requests under way, give up the Lease and exit, within 5 seconds;\n"
    "                       jobs go on running\n"
    "\n"
    "EXIT STATUS\n"
    "    0 after a signal, 1 when the connection to the API server is not configured or an address cannot\n"
    "    be bound, 2 for a wrong option\n";

const struct option_example options_examples[] = {
    {"ptj-operator",
     "In a pod: the jobs of all namespaces, with the permissions of the pod's service account."},
    {"ptj-operator --namespace=team-a --leader-elect-namespace=team-a",
     "The jobs of one namespace, with permissions in that namespace alone."},
    {"ptj-operator --server=http://127.0.0.1:8001 --leader-elect=false",
     "On a developer's machine, through `kubectl proxy`."},
    {"ptj-operator --log-level=debug --metrics-bind-address=127.0.0.1:8080",
     "Each decision in the log; /metrics for this machine alone."},
    {0},
};

/* Empty is as if not given, so that a manifest can pass on a variable that may be unset. */
static int set_file(void *field, const struct option_row *o, const char *value, struct err *err)
{
    return option_text(field, o, value[0] ? value : NULL, err);
}

/* Empty: as for a file. */
static int set_namespace(void *field, const struct option_row *o, const char *value, struct err *err)
{
    if (value[0] && !decode_is_dns_label(value, 63, false))
        return err_set(err, ERR_INVALID, "--%s: expected the name of a namespace, got \"%s\"", o->name,
                       value);
    return set_file(field, o, value, err);
}

static int set_image(void *field, const struct option_row *o, const char *value, struct err *err)
{
    if (!value[0])
        return err_set(err, ERR_INVALID, "--%s: expected an image, got nothing", o->name);
    return option_text(field, o, value, err);
}

static const char *const kueue_words[] = {"off", "auto", "on", NULL};

#define AT(field) offsetof(struct options, field)

const struct option_row options_rows[] = {
    {"namespace", 0, "NAME", set_namespace, AT(controller.ns),
     .help = "Only jobs of this namespace (default: all namespaces)."},
    {"server", 0, "URL", set_file, AT(api.server),
     .help = "The API server, outside a cluster: https://HOST:PORT, or of this machine itself "
             "http://127.0.0.1:PORT or unix:SOCKET, as `kubectl proxy` serves (default: the pod's)."},
    {"ca-file", 0, "FILE", set_file, AT(api.ca_file),
     .help = "The authority of its certificate (default: the system's)."},
    {"token-file", 0, "FILE", set_file, AT(api.token_file),
     .help = "Who the operator is. It reads both files again every minute (default: it sends no token)."},
    {"metrics-bind-address", 0, "ADDR", option_text, AT(manager.metrics_address),
     .help = "The address of /metrics; 0 turns it off (default :8080)."},
    {"health-probe-bind-address", 0, "ADDR", option_text, AT(manager.probe_address),
     .help = "The address of /healthz and /readyz; 0 turns them off (default :8081)."},
    {"leader-elect", 0, "BOOL", option_bool, AT(leader_elect), .optional = true,
     .help = "Work only while holding the Lease torchkeeper-operator, so that several may run (default "
             "true)."},
    {"leader-elect-namespace", 0, "NAME", set_namespace, AT(manager.lease_ns),
     .help = "The namespace of that Lease (default: POD_NAMESPACE, else the pod's own, else default)."},
    {"leader-elect-lease-duration", 0, "S", option_integer, AT(lease_duration_s), 2, 3600,
     .help = "An operator that leads and did not renew the Lease for so many seconds is replaced by another "
             "one, 2 to 3600 (default 15)."},
    {"tensorboard", 0, "BOOL", option_bool, AT(tensorboard), .optional = true,
     .help = "Make TensorBoards. With false the operator needs no permission for Deployments, and reports "
             "Disabled for "
             "jobs with a tensorboardSpec (default true)."},
    {"tensorboard-image", 0, "IMAGE", set_image, AT(controller.tensorboard_image),
     .help = "For jobs whose tensorboardSpec names none (default " DEFAULT_TENSORBOARD_IMAGE ")."},
    {"launcher-image", 0, "IMAGE", set_image, AT(controller.launcher_image),
     .help = "For jobs with torchrunConfig.launcher Torchkeeper (default " DEFAULT_LAUNCHER_IMAGE ")."},
    {"isolate-jobs", 0, "BOOL", option_bool, AT(controller.guards.isolate), .optional = true,
     .help = "Give each job a NetworkPolicy that lets in its own pods only, and to port 29402 this "
             "operator's (default true)."},
    {"scraper-namespace", 0, "NAME", set_namespace, AT(controller.guards.scraper_ns),
     .help = "The pods of this namespace may reach port 29402, too (default: none)."},
    {"job-keys", 0, "BOOL", option_bool, AT(controller.job_keys), .optional = true,
     .help = "Give each job of several nodes with torchrun a random key in a Secret, by which its launchers "
             "know each other (default true)."},
    {"kueue", 0, "WHEN", option_choice, AT(controller.kueue), QUEUES_OFF, .words = kueue_words,
     .help = "Jobs with the label kueue.x-k8s.io/queue-name wait until Kueue admits them: off, auto (where "
             "the API server serves Kueue's Workloads) or on (default auto)."},
    {"gang-scheduler", 0, "NAME", option_choice, AT(controller.gangs.scheduler), GANG_NONE,
     .words = gang_schedulers,
     .help = "Start all pods of a job together: give each attempt a PodGroup of coscheduling, volcano, or "
             "Kubernetes itself (native), or none. Jobs that name another scheduler or PodGroup get none "
             "(default none)."},
    {"gang-scheduler-name", 0, "NAME", set_file, AT(controller.gangs.scheduler_name),
     .help = "The schedulerName of these pods (default scheduler-plugins-scheduler with coscheduling, "
             "volcano with "
             "volcano)."},
    {"gang-start-deadline", 0, "S", option_integer, AT(controller.gangs.start_deadline_s), 0, 86400,
     .help = "Without a gang scheduler, jobs that each hold a part of the nodes can wait for each other. A "
             "job of "
             "several pods, one of which is Unschedulable, gives up its nodes after S to 2 S seconds and "
             "tries again, "
             "counted nowhere, unless it has startDeadlineSeconds; 0: never (default 0)."},
    {"log-level", 0, "LEVEL", option_choice, AT(log_level), LOG_DEBUG, .words = log_level_names,
     .help = "debug, info, warn or error (default info)."},
    {"version", .set = option_flag, .offset = AT(version), .help = "Print the version."},
    {"help", 'h', .set = option_flag, .offset = AT(help), .help = "Print this."},
    {0},
};

void options_help(FILE *out)
{
    fputs(HELP_HEAD, out);
    options_print(out, options_rows, NULL, NULL);
    fputs(HELP_TAIL, out);
    options_print_examples(out, options_examples);
}

static const char *const SCHEDULER_NAMES[] = {
    [GANG_COSCHEDULING] = "scheduler-plugins-scheduler", [GANG_VOLCANO] = "volcano", [GANG_NATIVE] = NULL};

int options_parse(struct options *o, int argc, char **argv, struct err *err)
{
    struct options_reader r = {{options_rows}, argc, argv, 1, .manual = "ptj-operator --help"};
    struct option_given given;
    int rc;

    *o = (struct options){
        .controller = {.tensorboard_image = DEFAULT_TENSORBOARD_IMAGE,
                       .launcher_image = DEFAULT_LAUNCHER_IMAGE,
                       .guards.isolate = true,
                       .job_keys = true,
                       .kueue = QUEUES_AUTO},
        .manager = {.name = "ptj-operator", .metrics_address = ":8080", .probe_address = ":8081"},
        .leader_elect = true,
        .tensorboard = true,
        .lease_duration_s = 15,
        .log_level = LOG_INFO,
    };
    while ((rc = options_next(&r, &given, err)) > 0) {
        if (!given.row)
            return err_set(err, ERR_INVALID, "%s: expected options only (ptj-operator --help)", given.value);
        if (option_set(&given, o, err) < 0)
            return -1;
    }
    if (!o->controller.gangs.scheduler_name)
        o->controller.gangs.scheduler_name = SCHEDULER_NAMES[o->controller.gangs.scheduler];
    o->controller.tensorboard_image = o->tensorboard ? o->controller.tensorboard_image : NULL;
    o->manager.lease = o->leader_elect ? LEASE_NAME : NULL;
    o->manager.lease_ms = o->lease_duration_s * 1000;
    return rc;
}
