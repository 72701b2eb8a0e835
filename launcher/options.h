/* options.h - torchrun's command line: the table of options, and parsing into struct options. The environment and
 * the machine are read through struct options_host only, so tests can replace them.
 *
 * Ownership: everything in struct options is in the caller's arena or points into argv and the environment.
 * Errors:    ERR_INVALID with one line that names the option, its value and what was expected. A torchrun option
 *            that this launcher does not support is refused so, unless ignoring it changes nothing.
 */
#ifndef TK_LAUNCHER_OPTIONS_H
#define TK_LAUNCHER_OPTIONS_H

#include "common/arena.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/options.h"
#include "rendezvous/meet.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

enum { OPTIONS_WARNINGS_MAX = 8, OPTIONS_NPROC_MAX = 1024, OPTIONS_WORLD_MAX = 1 << 20 };

enum option_id {
    OPT_NNODES,
    OPT_NPROC_PER_NODE,
    OPT_NODE_RANK,
    OPT_MODULE,
    OPT_NO_PYTHON,
    OPT_RUN_PATH,
    OPT_USE_ENV,
    OPT_RDZV_BACKEND,
    OPT_RDZV_ENDPOINT,
    OPT_RDZV_ID,
    OPT_RDZV_CONF,
    OPT_STANDALONE,
    OPT_MASTER_ADDR,
    OPT_MASTER_PORT,
    OPT_LOCAL_ADDR,
    OPT_MAX_RESTARTS,
    OPT_MONITOR_INTERVAL,
    OPT_SHUTDOWN_TIMEOUT,
    OPT_SIGNALS_TO_HANDLE,
    OPT_LOG_DIR,
    OPT_REDIRECTS,
    OPT_TEE,
    OPT_LOCAL_RANKS_FILTER,
    OPT_LOG_LINE_PREFIX_TEMPLATE,
    OPT_DUPLICATE_STDOUT_FILTERS,
    OPT_DUPLICATE_STDERR_FILTERS,
    OPT_LOGS_SPECS,
    OPT_START_METHOD,
    OPT_ROLE,
    OPT_NUMA_BINDING,
    OPT_VIRTUAL_LOCAL_RANK,
    OPT_EVENT_LOG_HANDLER,
    OPT_PRINT_COMPLETION,
    OPT_INSTALL_TO,
    OPT_HELP,
    OPT_VERSION,
    N_OPTIONS,
};

/* The table, indexed by enum option_id, in the order of the help page. */
extern const struct option_row option_rows[];

/* The environment and the machine, as the parser sees them. */
struct options_host {
    char *(*get)(const char *name); /* getenv */
    int cpus;
    int gpus;                               /* that CUDA_VISIBLE_DEVICES leaves */
    bool (*wants_python)(const char *path); /* as program_wants_python; NULL: by its name alone */
};

/* The text of each option as given (flags: "1"), else of its PET_* variable, else NULL. */
struct option_values {
    const char *text[N_OPTIONS];
    bool from_env[N_OPTIONS]; /* from its PET_* variable */
    char *const *rest;        /* the program and its arguments, ended by NULL */
};

/* A set of a rank's streams. */
enum { STD_NONE = 0, STD_OUT = 1, STD_ERR = 2, STD_BOTH = 3 };

enum program_kind { PROGRAM_EXECUTABLE, PROGRAM_PYTHON_FILE, PROGRAM_PYTHON_MODULE, PROGRAM_PYTHON_RUN_PATH };

struct options {
    bool help, version;
    const char *completion; /* the shell whose completion script is to be printed; NULL: none */
    const char *install_to; /* the file that this program is to be copied to; NULL: none */
    int nnodes_min;
    int nnodes, nproc, node_rank; /* nnodes: the maximum; nproc: ranks of this node */
    bool is_static;               /* nodes have fixed ranks (--rdzv-backend static) */
    /* Of several nodes; agent_nodes.c adds what stands below. Its node's key is that of the ranks of one node, too. */
    struct meet_config meeting;
    bool standalone;
    const char *run_id;      /* NULL: standalone, the launcher generates one */
    const char *master_addr; /* MASTER_ADDR of all ranks; NULL (several nodes, c10d): node 0's address */
    int master_port;         /* 0: a free one is chosen */
    const char *role;
    int max_restarts;
    int64_t shutdown_timeout_ms;
    int64_t
        progress_timeout_ms;   /* without a sign of life of any rank for so long the run hangs; 0: for ever */
    sigset_t signals, ignored; /* ignored: by this launcher and its ranks, as it was started; main.c */
    bool signals_named;        /* by --signals-to-handle */
    const char *signals_text;  /* `signals` for the ranks' TORCHELASTIC_SIGNALS_TO_HANDLE */
    enum program_kind program_kind;
    char *const *program;        /* the program and its arguments */
    bool local_rank_argument;    /* pass --local-rank=N to the program, as torch.distributed.launch does */
    bool virtual_local_rank;     /* every rank has LOCAL_RANK 0 and sees its own GPU only */
    const char *log_dir;         /* NULL: not given */
    uint8_t *redirects;          /* [nproc] STD_*: streams that go to files only */
    uint8_t *tee;                /* [nproc] STD_*: streams that go to files and the console */
    bool *shown;                 /* [nproc] false: its output does not go to the console */
    const char *prefix_template; /* of teed lines; NULL: the default */
    /* Of stdout, stderr: texts; teed lines that contain one also go to a file. NULL: none. */
    const char *const *filters[2];
    int warnings;
    const char *warning[OPTIONS_WARNINGS_MAX]; /* what was given and has no effect, for the user */
};

/* Split the command line into values. The last path component of argv[0] tells torchrun from
 * torch.distributed.launch. */
int option_values_parse(int argc, char *const *argv, const struct options_host *host, struct arena *a,
                        struct option_values *ret, struct err *err) MUST_CHECK;

/* Parse and check the command line and fill *ret; with help, version, completion or install_to set, the other fields are
 * defaults. */
int options_parse(int argc, char *const *argv, const struct options_host *host, struct arena *a,
                  struct options *ret, struct err *err) MUST_CHECK;

/* Whether the program is called as torch.distributed.launch (or `launch`). */
bool options_is_launch(const char *argv0);

/* --help: print the help page to stdout. */
void options_print_help(bool launch);
extern const struct option_example torchrun_examples[], launch_examples[];

/* --print-completion: print the completion script for `shell` to stdout. */
void options_print_completion(const char *shell, bool launch);

#endif
