/* options_table.c - the table of all options, read by the parser and for PET_* variables; the help page and the completions that
 * are printed from it. */
#include "common/wrap.h"
#include "launcher/options.h"

#include <string.h>

const struct option_row option_rows[N_OPTIONS + 1] = {
    [OPT_NNODES] = {"nnodes", 0, "N", .env = "PET_NNODES", .section = "Size",
                    .help = "Number of nodes (default 1, at most 2000), or MIN:MAX with c10d: nodes may then "
                            "come and go while the run goes on."},
    [OPT_NPROC_PER_NODE] =
        {"nproc-per-node", 0, "N", .env = "PET_NPROC_PER_NODE",
         .help = "Ranks on this node: a number, gpu (one per GPU that CUDA_VISIBLE_DEVICES leaves), cpu (one "
                 "per CPU that may be used) or auto (gpu when there is one, else cpu). Default 1."},
    [OPT_NODE_RANK] = {"node-rank", 0, "N", option_integer, .max = OPTIONS_WORLD_MAX, .env = "PET_NODE_RANK",
                       .help = "Which node this is, 0 to nnodes - 1 (default 0). Needed with several nodes "
                               "and static; c10d numbers the nodes itself."},
    [OPT_MODULE] = {"module", 'm', NULL, .env = "PET_MODULE", .section = "The program",
                    .help = "PROGRAM is a Python module, run as python -m PROGRAM."},
    [OPT_NO_PYTHON] = {"no-python", 0, NULL, .env = "PET_NO_PYTHON",
                       .help = "PROGRAM is an executable whatever its name."},
    [OPT_RUN_PATH] = {"run-path", 0, NULL, .env = "PET_RUN_PATH",
                      .help = "Run the script with Python's runpy.run_path."},
    [OPT_USE_ENV] =
        {"use-env", 0, NULL,
         .help = "For torch.distributed.launch: do not pass --local-rank=N to PROGRAM. torchrun never does."},
    [OPT_RDZV_BACKEND] = {"rdzv-backend", 0, "NAME", option_choice, .words = OPTION_WORDS("static", "c10d"),
                          .env = "PET_RDZV_BACKEND", .section = "Meeting other nodes",
                          .help =
                              "static (default: --node-rank numbers the nodes) or c10d (they number "
                              "themselves). With one node there are no others to meet: both do the same, and "
                              "without --rdzv-endpoint and --master-port it is --standalone. etcd and "
                              "etcd-v2 are refused: launchers meet without a server of their own here."},
    [OPT_RDZV_ENDPOINT] = {"rdzv-endpoint", 0, "HOST[:PORT]", .env = "PET_RDZV_ENDPOINT",
                           .help =
                               "Where several nodes meet: the launcher of that node listens there (c10d: "
                               "port 29400 if none is given). An IPv6 address stands in brackets. With "
                               "static it also stands for --master-addr and --master-port, and where it has "
                               "no port of its own the launcher of node 0 listens 100 below MASTER_PORT."},
    [OPT_RDZV_ID] =
        {"rdzv-id", 0, "ID", .env = "PET_RDZV_ID",
         .help =
             "The run's id, the same on all its nodes and different between runs; of one node a fresh one by "
             "default. Several nodes that do not meet on loopback need one, or TORCHKEEPER_JOB_KEY."},
    [OPT_RDZV_CONF] =
        {"rdzv-conf", 0, "K=V[,K=V]", .env = "PET_RDZV_CONF",
         .help =
             "Settings of the rendezvous, times in seconds. join_timeout (600; static: timeout): for enough "
             "nodes to come. last_call_timeout (30): for more than MIN. is_host (true, false): does this "
             "node listen at the endpoint; if not given, when that is a free port of this machine. "
             "keep_alive_interval (5) and keep_alive_max_attempt (3): a node not heard of for their product "
             "is lost, one whose launcher has ended at once. read_timeout, close_timeout, heartbeat_timeout, "
             "rank, store_type, use_libuv: accepted, without effect; others with a warning."},
    [OPT_STANDALONE] = {"standalone", 0, NULL, .env = "PET_STANDALONE",
                        .help =
                            "One node, an id of its own and a free port: several runs fit on one machine."},
    [OPT_MASTER_ADDR] = {"master-addr", 0, "HOST", .env = "PET_MASTER_ADDR",
                         .help = "Address of the node of rank 0 (static: default 127.0.0.1; c10d: that of "
                                 "the round's first node)."},
    [OPT_MASTER_PORT] = {"master-port", 0, "PORT", option_integer, .min = 1, .max = 65535,
                         .env = "PET_MASTER_PORT",
                         .help = "Port at which rank 0 listens (static with several nodes: default 29500; "
                                 "else a free one). The launcher itself never listens there."},
    [OPT_LOCAL_ADDR] = {"local-addr", 0, "HOST", .env = "PET_LOCAL_ADDR",
                        .help =
                            "Address by which other nodes reach this one (default: that by which it reaches "
                            "the endpoint). With one node and c10d the ranks get it as MASTER_ADDR."},
    [OPT_MAX_RESTARTS] = {"max-restarts", 0, "N", option_integer, .max = 1 << 20, .env = "PET_MAX_RESTARTS",
                          .section = "Failures and signals",
                          .help = "How often all ranks of all nodes are started again after one failed "
                                  "(default 0); the endpoint's host decides. A node that comes, goes or is "
                                  "lost uses none. After exit code 2, wrong usage, there is no restart."},
    [OPT_MONITOR_INTERVAL] = {"monitor-interval", 0, "S", option_number, .most = 86400,
                              .env = "PET_MONITOR_INTERVAL",
                              .help = "Accepted; nothing is polled here, an ended rank is seen at once."},
    [OPT_SHUTDOWN_TIMEOUT] =
        {"shutdown-timeout", 0, "S", option_number, .most = 86400, .env = "PET_SHUTDOWN_TIMEOUT",
         .help = "Time between SIGTERM and SIGKILL for ranks that have to stop (default "
                 "$TORCH_ELASTIC_SHUTDOWN_TIMEOUT, else 20, below the 30 s that Kubernetes grants a pod)."},
    [OPT_SIGNALS_TO_HANDLE] = {"signals-to-handle", 0, "A,B", .env = "PET_SIGNALS_TO_HANDLE",
                               .help = "Signals that are passed on to the ranks and end the run (default "
                                       "SIGTERM,SIGINT,SIGHUP,SIGQUIT, but those that were ignored when "
                                       "torchrun was started, as by nohup)."},
    [OPT_LOG_DIR] = {"log-dir", 0, "DIR", .env = "PET_LOG_DIR", .section = "Output",
                     .help =
                         "Where redirected output and error files go: DIR/<id>_<random>/attempt_<n>/<local "
                         "rank>/{stdout.log,stderr.log,error.json}."},
    [OPT_REDIRECTS] = {"redirects", 'r', "MAP", .env = "PET_REDIRECTS",
                       .help = "Streams that go to files and not to the console: 0 none, 1 stdout, 2 stderr, "
                               "3 both, for all ranks or per local rank (0:1,12:3)."},
    [OPT_TEE] = {"tee", 't', "MAP", .env = "PET_TEE",
                 .help = "Streams that go line by line with a prefix to the console and, where a folder can "
                         "be made, to files. Each state of a progress bar is a line."},
    [OPT_LOCAL_RANKS_FILTER] = {"local-ranks-filter", 0, "A,B", .env = "PET_LOCAL_RANKS_FILTER",
                                .help = "Show the output of these local ranks only."},
    [OPT_LOG_LINE_PREFIX_TEMPLATE] =
        {"log-line-prefix-template", 0, "TEXT", .env = "PET_LOG_LINE_PREFIX_TEMPLATE",
         .help = "What stands before a teed line; ${role_name}, ${local_rank}, ${rank} and ${hostname} stand "
                 "for the rank's own. Default $TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE, else "
                 "[${role_name}${local_rank}]:"},
    [OPT_DUPLICATE_STDOUT_FILTERS] =
        {"duplicate-stdout-filters", 0, "A,B", .env = "PET_DUPLICATE_STDOUT_FILTERS",
         .help = "Lines of teed stdout that contain A or B go, with their prefix, also to "
                 "attempt_<n>/filtered_stdout.log in the log folder; ,, is a comma."},
    [OPT_DUPLICATE_STDERR_FILTERS] = {"duplicate-stderr-filters", 0, "A,B",
                                      .env = "PET_DUPLICATE_STDERR_FILTERS",
                                      .help = "The same for stderr: attempt_<n>/filtered_stderr.log."},
    [OPT_LOGS_SPECS] = {"logs-specs", 0, "NAME", .help = "Only \"default\": others are Python plugins."},
    [OPT_START_METHOD] = {"start-method", 0, "NAME", option_choice,
                          .words = OPTION_WORDS("spawn", "fork", "forkserver"), .env = "PET_START_METHOD",
                          .section = "Other",
                          .help = "spawn, fork or forkserver. Accepted; a rank is always a new process."},
    [OPT_ROLE] = {"role", 0, "NAME", .env = "PET_ROLE",
                  .help = "The role of this node's ranks, ROLE_NAME in their environment (default "
                          "\"default\"). ROLE_RANK counts the ranks of all nodes with the same role."},
    [OPT_NUMA_BINDING] = {"numa-binding", 0, "NAME",
                          .help = "Refused: this launcher does not bind ranks to CPUs."},
    [OPT_VIRTUAL_LOCAL_RANK] = {"virtual-local-rank", 0, NULL, .env = "PET_VIRTUAL_LOCAL_RANK",
                                .help = "Every rank gets LOCAL_RANK=0 and sees its own GPU only."},
    [OPT_EVENT_LOG_HANDLER] = {"event-log-handler", 0, "NAME", .env = "PET_EVENT_LOG_HANDLER",
                               .help = "Only \"null\" (default): others are Python's log handlers."},
    [OPT_PRINT_COMPLETION] = {"print-completion", 0, "SHELL", option_choice,
                              .words = OPTION_WORDS("bash", "zsh", "fish", "tcsh"),
                              .help = "Print what bash, zsh, fish or tcsh needs to complete these options."},
    [OPT_INSTALL_TO] = {"install-to", 0, "FILE",
                        .help = "Copy this program to FILE, for anybody to run, and end."},
    [OPT_HELP] = {"help", 'h', NULL, .help = "This page."},
    [OPT_VERSION] = {"version", 0, NULL, .help = "Print the version."},
};

static const char DESCRIPTION[] =
    "Starts PROGRAM once per rank with RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR, "
    "MASTER_PORT and torchrun's other variables set. A PROGRAM that is a file or folder of Python's, or "
    "follows -m, is run by Python ($PYTHON_EXEC, else python3 or python), any other is an executable. The "
    "first rank that fails stops the others: SIGTERM, then SIGKILL. They are started again up to "
    "--max-restarts times. SIGTERM and SIGINT are passed on, and the ranks get --shutdown-timeout to save. "
    "In ARGUMENTS, ${local_rank} and $local_rank stand for the rank's number on its node.";

static const char WORDS[] =
    "Words may be joined by - or by _, values by = or by a space. An option that is not given takes its "
    "value from the environment: --nproc-per-node from PET_NPROC_PER_NODE, and so on.";

static const char *const VARIABLES[][2] = {
    {"TORCHKEEPER_PROGRESS_PORT=PORT",
     "Serve what is known of the training's progress there, to anybody: GET /progress (JSON) and /metrics "
     "(Prometheus). It is read from the output of rank 0 and from its progress file."},
    {"TORCHKEEPER_PROGRESS_FILE=FILE",
     "Where rank 0 may leave its progress, as a JSON object with any of step, totalSteps, epoch, "
     "totalEpochs, percent, loss and samplesPerSecond. By default, while progress is served, a file in a "
     "folder of the run; ranks find its name in this variable."},
    {"TORCHKEEPER_PROGRESS_TIMEOUT=SECONDS",
     "The launcher ends a run in which no rank of any node is active for so long. A rank is active when it "
     "writes output, changes the progress file, or runs a step or a collective call of this project's "
     "trainer. The launcher names the rank that holds up the others, and its node ends with 138, whatever "
     "--max-restarts is. All nodes need the same value. Without it a run may hang for ever."},
    {"TORCHKEEPER_JOB_KEY=DIGITS",
     "64 hexadecimal digits, the same on all nodes: a launcher without them cannot take part in the run, "
     "even with its --rdzv-id. Ranks do not find it in their environment."},
};

static const char STATUS[] =
    "0 when every rank ended with 0. Else the status of the rank that failed first (of the first that did "
    "not fail because of another: 140 is \"a peer was lost\"), 128 + n when signal n killed it. 143 after "
    "SIGTERM, 130 after SIGINT. 2: wrong usage. 1: the program cannot be started. With several nodes, one on "
    "which nothing failed by itself ends with 140 and prints what failed, and where; 138: too few nodes "
    "came, this machine lacks memory, processes or descriptors, or the run hung because of a rank here "
    "(TORCHKEEPER_PROGRESS_TIMEOUT).";

const struct option_example torchrun_examples[] = {
    {"torchrun --nproc-per-node=4 trainer mnist-cnn", "Four ranks of an executable on this machine."},
    {"torchrun --standalone --nproc-per-node=gpu train.py --epochs 10",
     "A Python script, one rank per GPU; the words after the script are its arguments."},
    {"torchrun --nnodes=2 --node-rank=1 --master-addr=10.0.0.1 --rdzv-id=7 --nproc-per-node=8 train.py",
     "The second of two nodes. The same with --node-rank=0 runs on 10.0.0.1."},
    {"torchrun --nnodes=2:4 --rdzv-backend=c10d --rdzv-endpoint=10.0.0.1 --rdzv-id=7 train.py",
     "Two to four nodes that may come and go; the same on each of them."},
    {"source <(torchrun --print-completion bash)", "Completion of these options, in ~/.bashrc."},
    {0},
};

const struct option_example launch_examples[] = {
    {"launch --nproc-per-node=4 train.py", "Four ranks of a script that takes --local-rank."},
    {"launch --nproc-per-node=4 --use-env train.py", "Of one that reads LOCAL_RANK instead."},
    {"launch --use-env --no-python --nproc-per-node=2 trainer mnist-cnn", "Of an executable."},
    {0},
};

void options_print_help(bool launch)
{
    const char *name = launch ? "launch" : "torchrun";

    printf("NAME\n    %s - start the ranks of a distributed training run and watch over them\n\n", name);
    printf("SYNOPSIS\n    %s [OPTIONS] PROGRAM [ARGUMENTS...]\n\nDESCRIPTION\n", name);
    wrap_text(stdout, 4, DESCRIPTION);
    printf("\nOPTIONS\n");
    wrap_text(stdout, 4, WORDS);
    options_print(stdout, option_rows, NULL, NULL);
    printf("\nENVIRONMENT\n");
    for (size_t i = 0; i < ARRAY_LEN(VARIABLES); i++) {
        printf("    %s\n", VARIABLES[i][0]);
        wrap_text(stdout, 8, VARIABLES[i][1]);
    }
    printf("\nEXIT STATUS\n");
    wrap_text(stdout, 4, STATUS);
    options_print_examples(stdout, launch ? launch_examples : torchrun_examples);
}

/* Print every long option, each after `before`. */
static void print_names(const char *before)
{
    for (int i = 0; i < N_OPTIONS; i++)
        printf("%s%s%s", i ? " " : "", before, option_rows[i].name);
}

/* With the first sentence of each option's help. */
static void print_fish(const char *name)
{
    printf("# In ~/.config/fish/completions/%s.fish\n", name);
    for (const struct option_row *o = option_rows; o->name; o++) {
        const char *end = strstr(o->help, ". ");
        printf("complete -c %s -l %s%s", name, o->name, o->value ? " -r" : "");
        if (o->letter)
            printf(" -s %c", o->letter);
        printf(" -d '");
        for (const char *p = o->help; *p && p != end; p++)
            printf("%s%c", *p == '\'' ? "\\" : "", *p);
        printf("'\n");
    }
}

void options_print_completion(const char *shell, bool launch)
{
    const char *name = launch ? "launch" : "torchrun";

    if (strcmp(shell, "bash") == 0) {
        printf("# In ~/.bashrc: source <(%s --print-completion bash)\n", name);
        printf("complete -o default -W '");
        print_names("--");
        printf("' %s\n", name);
    } else if (strcmp(shell, "zsh") == 0) {
        printf("#compdef %s\n# In a folder of $fpath, as _%s.\n", name, name);
        printf("if [[ $PREFIX == -* ]]; then\n    compadd -- ");
        print_names("--");
        printf("\nelse\n    _files\nfi\n");
    } else if (strcmp(shell, "fish") == 0) {
        print_fish(name);
    } else {
        printf("# In ~/.tcshrc.complete\n");
        printf("complete %s 'c/--/(", name);
        print_names("");
        printf(")/' 'p/*/f/'\n");
    }
}
