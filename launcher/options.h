/* options.h - torchrun's command line: which options there are, and what they come to. Pure but for the seam.
 *
 * Ownership: everything in struct options lives in the caller's arena or points into argv and the environment.
 * Errors:    ERR_INVALID, one line that names the option, its value and what was expected. What torchrun has and
 *            this launcher has not is refused so, never ignored.
 */
#ifndef TK_LAUNCHER_OPTIONS_H
#define TK_LAUNCHER_OPTIONS_H

#include "common/arena.h"
#include "common/cleanup.h"
#include "common/err.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

enum { OPTIONS_NPROC_MAX = 1024, OPTIONS_WORLD_MAX = 1 << 20, OPTIONS_NODES_MAX = 2000 };

enum option_id {
    OPT_NNODES,
    OPT_NPROC_PER_NODE,
    OPT_NODE_RANK,
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
    OPT_START_METHOD,
    OPT_ROLE,
    OPT_MODULE,
    OPT_NO_PYTHON,
    OPT_RUN_PATH,
    OPT_NUMA_BINDING,
    OPT_VIRTUAL_LOCAL_RANK,
    OPT_USE_ENV,
    OPT_LOG_DIR,
    OPT_REDIRECTS,
    OPT_TEE,
    OPT_LOG_LINE_PREFIX_TEMPLATE,
    OPT_LOCAL_RANKS_FILTER,
    OPT_DUPLICATE_STDOUT_FILTERS,
    OPT_DUPLICATE_STDERR_FILTERS,
    OPT_LOGS_SPECS,
    OPT_EVENT_LOG_HANDLER,
    OPT_PRINT_COMPLETION,
    OPT_HELP,
    OPT_VERSION,
    N_OPTIONS,
};

struct option_row {
    const char *name; /* with dashes; underscores are the same */
    char letter;      /* 0: none */
    const char *meta; /* what its value is called; NULL: a flag */
    const char *group;
    const char *help; /* lines after the first are indented by the printer */
};

/* The table, indexed by enum option_id. */
extern const struct option_row option_rows[N_OPTIONS];

/* What options need to know of the machine. */
struct options_host {
    char *(*get)(const char *name); /* getenv */
    int cpus;
    int gpus;
};

/* As given: the text of each option (flags: "1"), or its PET_* default, or NULL. */
struct option_values {
    const char *text[N_OPTIONS];
    bool from_env[N_OPTIONS];
    char *const *rest; /* the program and its arguments, ended by NULL */
};

/* Where a rank's streams go; bit 1 is stdout, bit 2 is stderr. */
enum { STD_NONE = 0, STD_OUT = 1, STD_ERR = 2, STD_BOTH = 3 };

enum program_kind { PROGRAM_EXECUTABLE, PROGRAM_PYTHON_FILE, PROGRAM_PYTHON_MODULE, PROGRAM_PYTHON_RUN_PATH };

/* How several nodes meet; rendezvous/member.h and quorum.h say what the values mean. */
struct options_meeting {
    bool needed;      /* there may be several nodes */
    const char *host; /* of the store */
    int port;
    int is_host; /* -1: not said */
    const char *local_addr;
    int64_t join_ms, last_call_ms, keep_alive_ms;
    int keep_alive_attempts;
};

struct options {
    bool help, version;
    const char *completion; /* of this shell is to be printed; NULL: none */
    int nnodes_min;
    int nnodes, nproc, node_rank; /* nnodes: the most */
    bool is_static;
    struct options_meeting meeting;
    bool standalone;
    const char *run_id;      /* NULL: standalone, to be made up */
    const char *master_addr; /* what every worker gets; several nodes and c10d: NULL, node 0's own */
    int master_port;         /* 0: a free one is chosen */
    const char *role;
    int max_restarts;
    int64_t shutdown_timeout_ms;
    sigset_t signals;
    const char *signals_text; /* as the workers are told */
    enum program_kind program_kind;
    char *const *program; /* with its arguments */
    bool local_rank_argument;
    bool virtual_local_rank;
    const char *log_dir;         /* NULL: none wanted */
    uint8_t *redirects;          /* [nproc] STD_* */
    uint8_t *tee;                /* [nproc] STD_* */
    bool *shown;                 /* [nproc] false: its output is kept from the console */
    const char *prefix_template; /* of teed lines; NULL: the usual one */
    const char *const
        *filters[2]; /* stdout's, stderr's: teed lines that hold one go to a file too; NULL: none */
};

/* Split the command line into values; `program` is argv[0], whose last part tells torchrun from launch. */
int option_values_parse(int argc, char *const *argv, const struct options_host *host, struct arena *a,
                        struct option_values *ret, struct err *err) MUST_CHECK;

/* The whole way. */
int options_parse(int argc, char *const *argv, const struct options_host *host, struct arena *a,
                  struct options *ret, struct err *err) MUST_CHECK;

/* "3" or "0:1,12:3": STD_* for each of nproc ranks. `option` names it in errors. */
int options_std_map(const char *option, const char *text, int nproc, struct arena *a, uint8_t **ret,
                    struct err *err) MUST_CHECK;

/* Is this program called as torch.distributed.launch (or `launch`)? */
bool options_is_launch(const char *argv0);

/* --help: a page on stdout. */
void options_print_help(bool launch);

/* --print-completion: what `shell` (one of options_shells, ended by NULL) reads to complete our options, on stdout. */
extern const char *const options_shells[];
void options_print_completion(const char *shell, bool launch);

#endif
