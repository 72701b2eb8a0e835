/* options.c - what the values come to: numbers in range, one meaning, and a clear no to what is not there. */
#include "common/contract.h"
#include "common/sv.h"
#include "launcher/options_read.h"

#include <stdio.h>
#include <stdlib.h>
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

static int get_signals(const struct option_values *v, struct options *o, struct err *err)
{
    o->signals_text =
        v->text[OPT_SIGNALS_TO_HANDLE] ? v->text[OPT_SIGNALS_TO_HANDLE] : "SIGTERM,SIGINT,SIGHUP,SIGQUIT";
    struct sv rest = sv_from(o->signals_text), name;

    sigemptyset(&o->signals);
    while (rest.len && sv_next(&rest, ',', &name)) {
        int number = signal_number(sv_trim(name));
        if (!number)
            return option_bad(v, OPT_SIGNALS_TO_HANDLE, err,
                              "names out of SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2");
        sigaddset(&o->signals, number);
    }
    return 0;
}

int options_std_map(const char *option, const char *text, int nproc, struct arena *a, uint8_t **ret,
                    struct err *err)
{
    uint8_t *map = arena_array(a, (size_t)nproc, uint8_t);
    struct sv rest = sv_from(text ? text : "0"), part;
    int64_t rank, bits;

    if (sv_i64(rest, STD_NONE, STD_BOTH, &bits)) {
        memset(map, (int)bits, (size_t)nproc);
        *ret = map;
        return 0;
    }
    while (rest.len && sv_next(&rest, ',', &part)) {
        struct sv left, right = part;
        sv_next(&right, ':', &left);
        if (!sv_i64(left, 0, nproc - 1, &rank) || !sv_i64(right, STD_NONE, STD_BOTH, &bits))
            return err_set(err, ERR_INVALID,
                           "--%s=%.80s: expected 0, 1, 2 or 3, or RANK:0..3 pairs with ranks 0..%d", option,
                           text, nproc - 1);
        map[rank] = (uint8_t)bits;
    }
    *ret = map;
    return 0;
}

static int get_output(const struct option_values *v, struct arena *a, struct options *o, struct err *err)
{
    const char *filter = v->text[OPT_LOCAL_RANKS_FILTER];
    struct sv rest = sv_from(filter ? filter : ""), part;
    int64_t rank;

    o->log_dir = v->text[OPT_LOG_DIR];
    o->shown = arena_array(a, (size_t)o->nproc, bool);
    memset(o->shown, filter == NULL, (size_t)o->nproc);
    while (rest.len && sv_next(&rest, ',', &part)) {
        if (!sv_i64(sv_trim(part), 0, OPTIONS_NPROC_MAX, &rank))
            return option_bad(v, OPT_LOCAL_RANKS_FILTER, err, "local ranks with commas between them");
        if (rank < o->nproc)
            o->shown[rank] = true;
    }
    if (options_std_map("redirects", v->text[OPT_REDIRECTS], o->nproc, a, &o->redirects, err) < 0 ||
        options_std_map("tee", v->text[OPT_TEE], o->nproc, a, &o->tee, err) < 0)
        return -1;
    return 0;
}

static bool ends_with_py(const char *name)
{
    size_t len = strlen(name);

    return len > 3 && strcmp(name + len - 3, ".py") == 0;
}

static int get_program(const struct option_values *v, bool launch, struct options *o, struct err *err)
{
    const bool module = v->text[OPT_MODULE], no_python = v->text[OPT_NO_PYTHON],
               run_path = v->text[OPT_RUN_PATH];

    if (!v->rest[0])
        return err_set(err, ERR_INVALID,
                       "no program given: expected torchrun [OPTIONS] PROGRAM [ARGUMENTS...]");
    if (module + no_python + run_path > 1)
        return err_set(err, ERR_INVALID,
                       "--module, --no-python and --run-path: expected at most one of them");
    o->program = v->rest;
    o->program_kind = module                                   ? PROGRAM_PYTHON_MODULE
                      : run_path                               ? PROGRAM_PYTHON_RUN_PATH
                      : !no_python && ends_with_py(v->rest[0]) ? PROGRAM_PYTHON_FILE
                                                               : PROGRAM_EXECUTABLE;
    o->local_rank_argument = launch && !v->text[OPT_USE_ENV];
    return 0;
}

static int refuse_missing(const struct option_values *v, struct err *err)
{
    static const enum option_id missing[] = {OPT_NUMA_BINDING, OPT_DUPLICATE_STDOUT_FILTERS,
                                             OPT_DUPLICATE_STDERR_FILTERS};

    for (size_t i = 0; i < ARRAY_LEN(missing); i++)
        if (v->text[missing[i]])
            return err_set(err, ERR_INVALID, "--%s: not supported in this version",
                           option_rows[missing[i]].name);
    if (option_word(v, OPT_LOGS_SPECS, (const char *const[]){"default", NULL}, "default", err) < 0 ||
        option_word(v, OPT_EVENT_LOG_HANDLER, (const char *const[]){"null", NULL}, "null", err) < 0)
        return -1;
    return option_word(v, OPT_START_METHOD, (const char *const[]){"spawn", "fork", "forkserver", NULL},
                       "spawn, fork or forkserver", err);
}

int options_parse(int argc, char *const *argv, const struct options_host *host, struct arena *a,
                  struct options *ret, struct err *err)
{
    struct options o = {.shutdown_timeout_ms = CONTRACT_SHUTDOWN_TIMEOUT_S * 1000, .role = "default"};
    struct option_values v;
    int64_t ignored_ms;

    if (option_values_parse(argc, argv, host, a, &v, err) < 0)
        return -1;
    o.help = v.text[OPT_HELP];
    o.version = v.text[OPT_VERSION];
    if (o.help || o.version) {
        *ret = o;
        return 0;
    }
    if (v.text[OPT_ROLE])
        o.role = v.text[OPT_ROLE];
    o.virtual_local_rank = v.text[OPT_VIRTUAL_LOCAL_RANK];
    if (refuse_missing(&v, err) < 0 || options_nnodes(&v, &o, err) < 0 ||
        options_nproc(&v, host, &o, err) < 0 || options_rendezvous(&v, a, &o, err) < 0 ||
        option_int(&v, OPT_MAX_RESTARTS, 0, 1 << 20, &o.max_restarts, err) < 0 ||
        option_seconds(&v, OPT_MONITOR_INTERVAL, &ignored_ms, err) < 0 ||
        option_seconds(&v, OPT_SHUTDOWN_TIMEOUT, &o.shutdown_timeout_ms, err) < 0 ||
        get_signals(&v, &o, err) < 0 || get_output(&v, a, &o, err) < 0 ||
        get_program(&v, options_is_launch(argv[0]), &o, err) < 0)
        return -1;
    if ((int64_t)o.nnodes * o.nproc > OPTIONS_WORLD_MAX)
        return err_set(err, ERR_INVALID, "--nnodes x --nproc-per-node: more than %d ranks",
                       OPTIONS_WORLD_MAX);
    *ret = o;
    return 0;
}
