/* options.c - check the values of torchrun's options and resolve them into one struct. */
#include "common/contract.h"
#include "common/sv.h"
#include "host/rank_contract.h"
#include "launcher/options_read.h"

#include <stdio.h>
#include <string.h>

static int signal_number(struct sv name)
{
    static const struct {
        const char *name;
        int number;
    } known[] = {{"SIGTERM", SIGTERM}, {"SIGINT", SIGINT},   {"SIGHUP", SIGHUP},
                 {"SIGQUIT", SIGQUIT}, {"SIGUSR1", SIGUSR1}, {"SIGUSR2", SIGUSR2}};

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (sv_eq(name, known[i].name))
            return known[i].number;
    return 0;
}

/* As PyTorch's, an unknown name is passed over. */
static void get_signals(const struct option_values *v, struct arena *a, struct options *o)
{
    o->signals_text =
        v->text[OPT_SIGNALS_TO_HANDLE] ? v->text[OPT_SIGNALS_TO_HANDLE] : "SIGTERM,SIGINT,SIGHUP,SIGQUIT";
    o->signals_named = v->text[OPT_SIGNALS_TO_HANDLE];
    struct sv rest = sv_from(o->signals_text), name;

    sigemptyset(&o->signals);
    while (rest.len && sv_next(&rest, ',', &name)) {
        int number = signal_number(sv_trim(name));
        if (number)
            sigaddset(&o->signals, number);
        else
            option_warn(o, a,
                        "--signals-to-handle: %.*s is not handled: expected names out of SIGTERM, SIGINT, "
                        "SIGHUP, SIGQUIT, "
                        "SIGUSR1, SIGUSR2",
                        name.len < 40 ? (int)name.len : 40, name.p);
    }
}

static int get_program(const struct option_values *v, const struct options_host *host, bool launch,
                       struct options *o, struct err *err)
{
    const bool module = v->text[OPT_MODULE], no_python = v->text[OPT_NO_PYTHON],
               run_path = v->text[OPT_RUN_PATH];

    if (!v->rest[0])
        return err_set(
            err, ERR_INVALID,
            "no program given: expected %s [OPTIONS] PROGRAM [ARGUMENTS...]; in a "
            "PyTorchTrainingJob the program stands in the container's args, its command is not used",
            launch ? "launch" : "torchrun");
    if (module && no_python && !run_path)
        return err_set(err, ERR_INVALID, "--module and --no-python: expected at most one of them");
    if (launch && no_python && !v->text[OPT_USE_ENV])
        return err_set(
            err, ERR_INVALID,
            "--no-python: expected --use-env too: launch would pass --local-rank to a program that "
            "is no Python script");
    o->program = v->rest;
    o->program_kind = run_path ? PROGRAM_PYTHON_RUN_PATH
                      : module ? PROGRAM_PYTHON_MODULE
                      : !no_python && (sv_ends(sv_from(v->rest[0]), ".py") ||
                                       (host->wants_python && host->wants_python(v->rest[0])))
                          ? PROGRAM_PYTHON_FILE
                          : PROGRAM_EXECUTABLE;
    o->local_rank_argument = launch && !v->text[OPT_USE_ENV];
    return 0;
}

/* Each rank sees one device: never one that another rank, or nobody here, was given. */
static int check_virtual(const struct options_host *host, const struct options *o, struct err *err)
{
    const char *list = host->get("CUDA_VISIBLE_DEVICES");
    int there = list ? 1 : host->gpus;

    for (const char *p = list; p && *p; p++)
        there += *p == ',';
    if (!o->virtual_local_rank || o->nproc <= there || (!list && !there))
        return 0;
    return err_set(
        err, ERR_INVALID,
        "--virtual-local-rank: %d ranks here and %d GPU%s visible%s%.40s: expected a GPU for each rank",
        o->nproc, there, there == 1 ? "" : "s", list ? " in CUDA_VISIBLE_DEVICES=" : "", list ? list : "");
}

static bool is_other(const char *text, const char *word)
{
    return text && strcmp(text, word) != 0;
}

/* Refuse PyTorch's options that have no effect here. A value is accepted only where ignoring it changes
 * nothing. */
static int refuse_unsupported(const struct option_values *v, struct err *err)
{
    int ignored;

    if (is_other(v->text[OPT_LOGS_SPECS], "default"))
        return option_bad(v, OPT_LOGS_SPECS, err,
                          "default: others are Python plugins, and this launcher runs without Python");
    if (is_other(v->text[OPT_EVENT_LOG_HANDLER], "null"))
        return option_bad(v, OPT_EVENT_LOG_HANDLER, err,
                          "null: others are Python's log handlers, and this launcher runs without Python");
    if (v->text[OPT_NUMA_BINDING])
        return option_bad(v, OPT_NUMA_BINDING, err,
                          "the option to be left out: this launcher does not bind ranks to CPUs");
    return option_read(v, OPT_START_METHOD, &ignored, err);
}

/* A variable of whole seconds; one that is not set or empty leaves *ret_ms. */
static int get_seconds(const struct options_host *host, const char *name, int min, int max, int64_t *ret_ms,
                       struct err *err)
{
    const char *text = host->get(name);
    int64_t s;

    if (!text || !*text)
        return 0;
    if (!sv_i64(sv_trim(sv_from(text)), min, max, &s))
        return err_set(err, ERR_INVALID, "%s=%.40s: expected seconds, %d..%d", name, text, min, max);
    *ret_ms = s * 1000;
    return 0;
}

/* The option, else the variable that PyTorch's agent reads, else the default. */
static int get_shutdown_timeout(const struct option_values *v, const struct options_host *host,
                                struct options *o, struct err *err)
{
    double s;

    if (!v->text[OPT_SHUTDOWN_TIMEOUT])
        return get_seconds(host, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", 0, 86400, &o->shutdown_timeout_ms, err);
    if (option_read(v, OPT_SHUTDOWN_TIMEOUT, &s, err) < 0)
        return -1;
    o->shutdown_timeout_ms = (int64_t)(s * 1000);
    return 0;
}

/* Without an order, or with one that cannot be, addresses decide. */
static void get_order(const struct options_host *host, struct arena *a, struct options *o)
{
    const char *text = o->is_static ? NULL : host->get(CONTRACT_ENV_NODE_ORDER);
    int64_t order = o->is_static ? o->node_rank : -1;

    if (text && *text && !sv_i64(sv_from(text), 0, MEETING_NODES_MAX - 1, &order))
        option_warn(o, a, CONTRACT_ENV_NODE_ORDER "=%.40s has no effect: expected 0..%d", text,
                    MEETING_NODES_MAX - 1);
    o->meeting.node.wanted = order;
}

/* PyTorch's launcher then reads a pipe, where ranks that hang are reported. */
static void warn_of_timer(const struct options_host *host, struct arena *a, struct options *o)
{
    const char *wanted = host->get("TORCHELASTIC_ENABLE_FILE_TIMER");

    if (wanted && strcmp(wanted, "1") == 0)
        option_warn(o, a,
                    "TORCHELASTIC_ENABLE_FILE_TIMER=1 has no effect: this launcher has no such watchdog");
}

int options_parse(int argc, char *const *argv, const struct options_host *host, struct arena *a,
                  struct options *ret, struct err *err)
{
    struct options o = {.shutdown_timeout_ms = CONTRACT_SHUTDOWN_TIMEOUT_S * 1000, .role = "default"};
    struct option_values v;
    double ignored;
    int shell;

    if (option_values_parse(argc, argv, host, a, &v, err) < 0)
        return -1;
    o.help = v.text[OPT_HELP];
    o.version = v.text[OPT_VERSION];
    o.completion = v.text[OPT_PRINT_COMPLETION];
    o.install_to = v.text[OPT_INSTALL_TO];
    if (option_read(&v, OPT_PRINT_COMPLETION, &shell, err) < 0)
        return -1;
    if (o.help || o.version || o.completion || o.install_to) {
        *ret = o;
        return 0;
    }
    if (v.text[OPT_ROLE])
        o.role = v.text[OPT_ROLE];
    o.virtual_local_rank = v.text[OPT_VIRTUAL_LOCAL_RANK];
    if (refuse_unsupported(&v, err) < 0 || options_nnodes(&v, &o, err) < 0 ||
        options_nproc(&v, host, &o, err) < 0 || options_rendezvous(&v, host, a, &o, err) < 0 ||
        option_int(&v, OPT_MAX_RESTARTS, &o.max_restarts, err) < 0 ||
        option_read(&v, OPT_MONITOR_INTERVAL, &ignored, err) < 0 ||
        get_shutdown_timeout(&v, host, &o, err) < 0 ||
        get_seconds(host, CONTRACT_ENV_PROGRESS_TIMEOUT, 1, CONTRACT_PROGRESS_TIMEOUT_MAX_S,
                    &o.progress_timeout_ms, err) < 0 ||
        options_output(&v, a, &o, err) < 0 || check_virtual(host, &o, err) < 0 ||
        get_program(&v, host, options_is_launch(argv[0]), &o, err) < 0)
        return -1;
    get_signals(&v, a, &o);
    get_order(host, a, &o);
    warn_of_timer(host, a, &o);
    if ((int64_t)o.nnodes * o.nproc > OPTIONS_WORLD_MAX)
        return err_set(err, ERR_INVALID, "--nnodes x --nproc-per-node: more than %d ranks",
                       OPTIONS_WORLD_MAX);
    *ret = o;
    return 0;
}
