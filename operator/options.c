/* options.c - parse ptj-operator's flags by a table, which --help prints as well. */
#include "operator/options.h"

#include "common/nearest.h"
#include "operator/api/decode.h"

#include <getopt.h>
#include <string.h>

#define DEFAULT_TENSORBOARD_IMAGE "localhost/torchkeeper/tensorboard:dev"
#define DEFAULT_LAUNCHER_IMAGE "localhost/torchkeeper/launcher:dev"

const char OPTIONS_HELP[] =
    "NAME\n"
    "    ptj-operator - runs PyTorchTrainingJob resources (batch.tensorstack.dev/v1beta1) on Kubernetes\n"
    "\n"
    "SYNOPSIS\n"
    "    ptj-operator [--flag=value ...]\n"
    "\n"
    "DESCRIPTION\n"
    "    Watches PyTorchTrainingJobs and creates their pods, the Service through which the pods find each "
    "other, and\n"
    "    a TensorBoard where one is asked for; restarts by exit code, and keeps the status. In a pod it uses "
    "the pod's\n"
    "    service account, elsewhere what --server and its companions say. It logs JSON lines to standard "
    "error.\n"
    "    Two operators must not be responsible for the same job: one for the whole cluster and one for a "
    "namespace\n"
    "    must not overlap. Several with the same flags may run: one works, the others wait.\n"
    "\n"
    "FLAGS\n"
    "    --namespace=NAME                   only jobs of this namespace (default: all namespaces)\n"
    "    --server=URL                       the API server, outside a cluster: https://HOST:PORT, or of this "
    "machine "
    "itself\n"
    "                                       http://127.0.0.1:PORT or unix:SOCKET, as `kubectl proxy` serves "
    "(default: the\n"
    "                                       pod's)\n"
    "    --ca-file=FILE                     the authority of its certificate (default: the system's)\n"
    "    --token-file=FILE                  who we are; both files are read again when they change (default: "
    "nobody)\n"
    "    --metrics-bind-address=ADDR        where /metrics is served; 0 turns it off (default :8080)\n"
    "    --health-probe-bind-address=ADDR   where /healthz and /readyz are served; 0 turns it off (default "
    ":8081)\n"
    "    --leader-elect=BOOL                work only while holding the Lease torchkeeper-operator, so that "
    "several may run\n"
    "                                       (default true)\n"
    "    --leader-elect-namespace=NAME      where that Lease is (default: POD_NAMESPACE, else the pod's own, "
    "else\n"
    "                                       default)\n"
    "    --leader-elect-lease-duration=S    who leads and does not renew the Lease for so many seconds is "
    "followed by "
    "another\n"
    "                                       one, 2 to 3600 (default 15)\n"
    "    --kube-api-qps=N                   requests per second to the API server on average; 0 is unlimited "
    "(default 0)\n"
    "    --kube-api-burst=N                 requests at once under --kube-api-qps (default 100)\n"
    "    --tensorboard-image=IMAGE          for jobs whose tensorboardSpec names none\n"
    "                                       (default " DEFAULT_TENSORBOARD_IMAGE ")\n"
    "    --launcher-image=IMAGE             for jobs with torchrunConfig.launcher Torchkeeper\n"
    "                                       (default " DEFAULT_LAUNCHER_IMAGE ")\n"
    "    --log-level=LEVEL                  debug, info, warn or error (default info)\n"
    "    --version                          print the version\n"
    "    --help                             print this\n"
    "\n"
    "SIGNALS\n"
    "    SIGTERM, SIGINT    finish the requests under way, give up the Lease and exit, within 5 seconds; "
    "jobs "
    "go on running\n"
    "\n"
    "EXIT STATUS\n"
    "    0 after a signal, 1 when the API server cannot be configured or an address not be bound, 2 for a "
    "bad flag\n";

enum { LEASE_MIN_S = 2, LEASE_MAX_S = 3600 };

enum flag {
    FLAG_NAMESPACE = 256,
    FLAG_SERVER,
    FLAG_CA_FILE,
    FLAG_TOKEN_FILE,
    FLAG_METRICS,
    FLAG_HEALTH,
    FLAG_LEADER_ELECT,
    FLAG_LEADER_ELECT_NAMESPACE,
    FLAG_LEASE_DURATION,
    FLAG_QPS,
    FLAG_BURST,
    FLAG_TENSORBOARD_IMAGE,
    FLAG_LAUNCHER_IMAGE,
    FLAG_LOG_LEVEL,
    FLAG_VERSION,
    FLAG_HELP,
};

static const struct option FLAGS[] = {
    {"namespace", required_argument, NULL, FLAG_NAMESPACE},
    {"server", required_argument, NULL, FLAG_SERVER},
    {"ca-file", required_argument, NULL, FLAG_CA_FILE},
    {"token-file", required_argument, NULL, FLAG_TOKEN_FILE},
    {"metrics-bind-address", required_argument, NULL, FLAG_METRICS},
    {"health-probe-bind-address", required_argument, NULL, FLAG_HEALTH},
    {"leader-elect", optional_argument, NULL, FLAG_LEADER_ELECT},
    {"leader-elect-namespace", required_argument, NULL, FLAG_LEADER_ELECT_NAMESPACE},
    {"leader-elect-lease-duration", required_argument, NULL, FLAG_LEASE_DURATION},
    {"kube-api-qps", required_argument, NULL, FLAG_QPS},
    {"kube-api-burst", required_argument, NULL, FLAG_BURST},
    {"tensorboard-image", required_argument, NULL, FLAG_TENSORBOARD_IMAGE},
    {"launcher-image", required_argument, NULL, FLAG_LAUNCHER_IMAGE},
    {"log-level", required_argument, NULL, FLAG_LOG_LEVEL},
    {"version", no_argument, NULL, FLAG_VERSION},
    {"help", no_argument, NULL, FLAG_HELP},
    {NULL, 0, NULL, 0},
};

/* A flag without a value is true. */
static int set_bool(bool *ret, const char *flag, const char *value, struct err *err)
{
    bool no = value && strcmp(value, "false") == 0;

    if (value && !no && strcmp(value, "true") != 0)
        return err_set(err, ERR_INVALID, "%s: expected true or false, got \"%s\"", flag, value);
    *ret = !no;
    return 0;
}

/* Empty is as if not given, so that a manifest can pass on a variable that may be unset. */
static int set_namespace(const char **ret, const char *flag, const char *value, struct err *err)
{
    if (value[0] && !decode_is_dns_label(value, 63, false))
        return err_set(err, ERR_INVALID, "%s: expected the name of a namespace, got \"%s\"", flag, value);
    *ret = value[0] ? value : NULL;
    return 0;
}

static int set_image(const char **ret, const char *flag, const char *value, struct err *err)
{
    if (!value[0])
        return err_set(err, ERR_INVALID, "%s: expected an image, got nothing", flag);
    *ret = value;
    return 0;
}

static int set_log_level(enum log_level *ret, const char *value, struct err *err)
{
    struct nearest near = nearest_to(sv_from(value));
    char hint[NEAREST_HINT_BYTES];

    if (log_level_parse(value, ret))
        return 0;
    nearest_offer_all(&near, (const char *const[]){"debug", "info", "warn", "error", NULL});
    return err_set(err, ERR_INVALID, "--log-level: expected debug, info, warn or error, got \"%s\"%s", value,
                   nearest_hint(&near, "", hint));
}

static int set_number(struct options *o, enum flag flag, const char *value, struct err *err)
{
    bool lease = flag == FLAG_LEASE_DURATION;
    int64_t n = 0;

    if (flag == FLAG_QPS) {
        if (sv_f64(sv_from(value), &o->qps) && o->qps >= 0 && o->qps <= 1e6)
            return 0;
        return err_set(err, ERR_INVALID, "--kube-api-qps: expected a number 0..1000000, got \"%s\"", value);
    }
    if (lease && sv_i64(sv_from(value), LEASE_MIN_S, LEASE_MAX_S, &n)) {
        o->lease_duration_s = (int)n;
        return 0;
    }
    if (lease)
        return err_set(err, ERR_INVALID,
                       "--leader-elect-lease-duration: expected an integer %d..%d, got \"%s\"", LEASE_MIN_S,
                       LEASE_MAX_S, value);
    if (!sv_i64(sv_from(value), 1, 100000, &n))
        return err_set(err, ERR_INVALID, "--kube-api-burst: expected an integer 1..100000, got \"%s\"",
                       value);
    o->burst = (int)n;
    return 0;
}

static int set_flag(struct options *o, enum flag flag, const char *value, struct err *err)
{
    switch (flag) {
    case FLAG_NAMESPACE:
        return set_namespace(&o->ns, "--namespace", value, err);
    case FLAG_SERVER:
        o->api.server = value[0] ? value : NULL;
        return 0;
    case FLAG_CA_FILE:
        o->api.ca_file = value[0] ? value : NULL;
        return 0;
    case FLAG_TOKEN_FILE:
        o->api.token_file = value[0] ? value : NULL;
        return 0;
    case FLAG_METRICS:
        o->metrics_address = value;
        return 0;
    case FLAG_HEALTH:
        o->health_address = value;
        return 0;
    case FLAG_LEADER_ELECT:
        return set_bool(&o->leader_elect, "--leader-elect", value, err);
    case FLAG_LEADER_ELECT_NAMESPACE:
        return set_namespace(&o->leader_elect_ns, "--leader-elect-namespace", value, err);
    case FLAG_LEASE_DURATION:
    case FLAG_QPS:
    case FLAG_BURST:
        return set_number(o, flag, value, err);
    case FLAG_TENSORBOARD_IMAGE:
        return set_image(&o->tensorboard_image, "--tensorboard-image", value, err);
    case FLAG_LAUNCHER_IMAGE:
        return set_image(&o->launcher_image, "--launcher-image", value, err);
    case FLAG_LOG_LEVEL:
        return set_log_level(&o->log_level, value, err);
    case FLAG_VERSION:
        o->version = true;
        return 0;
    case FLAG_HELP:
        o->help = true;
        return 0;
    }
    return 0;
}

static int no_such_flag(const char *word, struct err *err)
{
    const size_t dashes = strspn(word, "-");
    struct nearest near = nearest_to((struct sv){word + dashes, strcspn(word + dashes, "=")});
    char hint[NEAREST_HINT_BYTES];

    for (size_t i = 0; dashes == 2 && FLAGS[i].name; i++)
        nearest_offer(&near, FLAGS[i].name);
    if (near.word && near.cost == 0)
        return err_set(err, ERR_INVALID, "%.80s: --%s takes no value", word, near.word);
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
        .burst = 100,
        .leader_elect = true,
        .lease_duration_s = 15,
        .log_level = LOG_INFO,
    };
    optind = 0;
    for (;;) {
        int before = optind ? optind : 1;
        int flag = getopt_long(argc, argv, "-:", FLAGS, NULL);
        if (flag == -1)
            break;
        if (flag == ':')
            return err_set(err, ERR_INVALID, "%s: expected a value", argv[before]);
        if (flag == '?')
            return no_such_flag(argv[before], err);
        if (flag == 1)
            return err_set(err, ERR_INVALID, "%s: expected flags only (ptj-operator --help)", optarg);
        if (set_flag(o, (enum flag)flag, optarg, err) < 0)
            return -1;
    }
    if (optind < argc)
        return err_set(err, ERR_INVALID, "%s: expected flags only (ptj-operator --help)", argv[optind]);
    return 0;
}
