/* options_table.c - the table of all options, read by the parser, the help page and PET_* variables. */
#include "launcher/options.h"

#include <stdio.h>
#include <string.h>

static const char SIZE[] = "Size";
static const char MEET[] = "Meeting other nodes";
static const char FAIL[] = "Failures and signals";
static const char PROGRAM[] = "The program";
static const char LOGS[] = "Output";
static const char OTHER[] = "Other";

const struct option_row option_rows[N_OPTIONS] = {
    [OPT_NNODES] = {"nnodes", 0, "N", SIZE,
                    "Number of nodes (default 1, at most 2000), or MIN:MAX with c10d: nodes may then\ncome "
                    "and go while the run goes on."},
    [OPT_NPROC_PER_NODE] = {"nproc-per-node", 0, "N", SIZE,
                            "Ranks on this node: a number, gpu (one per GPU that "
                            "CUDA_VISIBLE_DEVICES\nleaves), cpu (one per CPU that may "
                            "be\nused) or auto (gpu when there is one, else cpu). Default 1."},
    [OPT_NODE_RANK] = {"node-rank", 0, "N", SIZE,
                       "Which node this is, 0 to nnodes - 1 (default 0). Needed with several nodes\nand "
                       "static; c10d numbers the nodes itself."},
    [OPT_RDZV_BACKEND] =
        {"rdzv-backend", 0, "NAME", MEET,
         "static (default: --node-rank numbers the nodes) or c10d (they number\nthemselves). With one node "
         "nobody has to be met: both do the same, and\nwithout --rdzv-endpoint and --master-port it is "
         "--standalone. etcd\nand etcd-v2 are refused: launchers meet without a "
         "server of their own here."},
    [OPT_RDZV_ENDPOINT] =
        {"rdzv-endpoint", 0, "HOST[:PORT]", MEET,
         "Where several nodes meet: the launcher of that node listens there (c10d: port\n29400 if none is "
         "given). An IPv6 address stands in brackets. With static it also stands for --master-addr "
         "and\n--master-port, and where it has no port "
         "of its own the launcher of node 0\nlistens 100 below MASTER_PORT."},
    [OPT_RDZV_ID] = {"rdzv-id", 0, "ID", MEET,
                     "The run's id, the same on all its nodes and different between runs\n(default none; "
                     "with one node a fresh one)."},
    [OPT_RDZV_CONF] =
        {"rdzv-conf", 0, "K=V,...", MEET,
         "Settings of the rendezvous, times in seconds. join_timeout (600; static:\ntimeout): "
         "for enough nodes to come. last_call_timeout (30): for more than MIN.\nis_host (true, "
         "false): does this node listen at the endpoint; if not given,\nwhen that is a free "
         "port of this machine. keep_alive_interval (5) and\nkeep_alive_max_attempt (3): a "
         "node not heard of for their product is lost,\none whose launcher has ended at "
         "once.\nread_timeout, close_timeout, "
         "heartbeat_timeout, rank, store_type, use_libuv:\naccepted, without effect; others with a warning."},
    [OPT_STANDALONE] = {"standalone", 0, NULL, MEET,
                        "One node, an id of its own and a free port: several runs fit on one machine."},
    [OPT_MASTER_ADDR] =
        {"master-addr", 0, "HOST", MEET,
         "Address of the node of rank 0 (static: default 127.0.0.1; c10d: that of the\nround's first node)."},
    [OPT_MASTER_PORT] =
        {"master-port", 0, "PORT", MEET,
         "Port at which rank 0 listens (static with several nodes: default 29500; else a\nfree one). "
         "The\nlauncher itself never listens there."},
    [OPT_LOCAL_ADDR] = {"local-addr", 0, "HOST", MEET,
                        "Address by which other nodes reach this one (default: that by which it reaches\nthe "
                        "endpoint). With one node and c10d the ranks get it as MASTER_ADDR."},
    [OPT_MAX_RESTARTS] = {"max-restarts", 0, "N", FAIL,
                          "How often all ranks of all nodes are started again after one failed (default\n0); "
                          "the endpoint's host decides. A node that comes, goes or is lost uses none. "
                          "After\nexit code 2, wrong "
                          "usage, there is no restart."},
    [OPT_MONITOR_INTERVAL] = {"monitor-interval", 0, "S", FAIL,
                              "Accepted; nothing is polled here, an ended rank is seen at once."},
    [OPT_SHUTDOWN_TIMEOUT] =
        {"shutdown-timeout", 0, "S", FAIL,
         "Time between SIGTERM and SIGKILL for ranks that have to stop (default\n"
         "$TORCH_ELASTIC_SHUTDOWN_TIMEOUT, else 20, below the 30 s that Kubernetes grants a pod)."},
    [OPT_SIGNALS_TO_HANDLE] = {"signals-to-handle", 0, "A,B", FAIL,
                               "Signals that are passed on to the ranks and end the run "
                               "(default\nSIGTERM,SIGINT,SIGHUP,SIGQUIT, but "
                               "those that were ignored when torchrun was\nstarted, as by nohup)."},
    [OPT_START_METHOD] = {"start-method", 0, "NAME", OTHER,
                          "spawn, fork or forkserver. Accepted; a rank is always a new process."},
    [OPT_ROLE] = {"role", 0, "NAME", OTHER,
                  "The role of this node's ranks, ROLE_NAME in their environment (default\n\"default\"). "
                  "ROLE_RANK counts the ranks of all nodes with the same role."},
    [OPT_MODULE] = {"module", 'm', NULL, PROGRAM, "PROGRAM is a Python module, run as python -m PROGRAM."},
    [OPT_NO_PYTHON] = {"no-python", 0, NULL, PROGRAM, "PROGRAM is an executable whatever its name."},
    [OPT_RUN_PATH] = {"run-path", 0, NULL, PROGRAM, "Run the script with Python's runpy.run_path."},
    [OPT_NUMA_BINDING] = {"numa-binding", 0, "NAME", OTHER,
                          "Refused: this launcher does not bind ranks to CPUs."},
    [OPT_VIRTUAL_LOCAL_RANK] = {"virtual-local-rank", 0, NULL, OTHER,
                                "Every rank gets LOCAL_RANK=0 and sees its own GPU only."},
    [OPT_USE_ENV] =
        {"use-env", 0, NULL, PROGRAM,
         "For torch.distributed.launch: do not pass --local-rank=N to PROGRAM. torchrun\nnever does."},
    [OPT_LOG_DIR] = {"log-dir", 0, "DIR", LOGS,
                     "Where redirected output and error files go:\nDIR/<id>_<random>/attempt_<n>/<local "
                     "rank>/{stdout.log,stderr.log,error.json}."},
    [OPT_REDIRECTS] = {"redirects", 'r', "MAP", LOGS,
                       "Streams that go to files and not to the console: 0 none, 1 stdout, 2 stderr,\n3 "
                       "both, for all ranks or per local rank (0:1,12:3)."},
    [OPT_TEE] =
        {"tee", 't', "MAP", LOGS,
         "Streams that go line by line with a prefix to the console and, where a folder can\nbe made, to "
         "files. Progress\nbars "
         "are redrawn in place on a terminal; elsewhere each state is a line."},
    [OPT_LOCAL_RANKS_FILTER] = {"local-ranks-filter", 0, "A,B", LOGS,
                                "Show the output of these local ranks only."},
    [OPT_LOG_LINE_PREFIX_TEMPLATE] =
        {"log-line-prefix-template", 0, "TEXT", LOGS,
         "What stands before a teed line; ${role_name}, ${local_rank}, ${rank} and ${hostname}\nstand for "
         "the "
         "rank's own. Default $TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE, else\n[${role_name}${local_rank}]:"},
    [OPT_DUPLICATE_STDOUT_FILTERS] = {"duplicate-stdout-filters", 0, "A,B", LOGS,
                                      "Lines of teed stdout that contain A or B go, with their prefix, also "
                                      "to\nattempt_<n>/filtered_stdout.log "
                                      "in the log folder; ,, is a comma."},
    [OPT_DUPLICATE_STDERR_FILTERS] = {"duplicate-stderr-filters", 0, "A,B", LOGS,
                                      "The same for stderr: attempt_<n>/filtered_stderr.log."},
    [OPT_LOGS_SPECS] = {"logs-specs", 0, "NAME", LOGS, "Only \"default\": others are Python plugins."},
    [OPT_EVENT_LOG_HANDLER] = {"event-log-handler", 0, "NAME", OTHER,
                               "Only \"null\" (default): others are Python's log handlers."},
    [OPT_PRINT_COMPLETION] = {"print-completion", 0, "SHELL", OTHER,
                              "Print what bash, zsh or tcsh needs to complete these options."},
    [OPT_INSTALL_TO] = {"install-to", 0, "FILE", OTHER,
                        "Copy this program to FILE, for anybody to run, and end."},
    [OPT_HELP] = {"help", 'h', NULL, OTHER, "This page."},
    [OPT_VERSION] = {"version", 0, NULL, OTHER, "Print the version."},
};

/* Print text with every line indented. */
static void print_indented(const char *text)
{
    for (;;) {
        size_t n = strcspn(text, "\n");
        printf("              %.*s\n", (int)n, text);
        if (!text[n])
            return;
        text += n + 1;
    }
}

static void print_group(const char *group)
{
    printf("  %s\n", group);
    for (int i = 0; i < N_OPTIONS; i++) {
        const struct option_row *o = &option_rows[i];
        if (o->group != group)
            continue;
        printf("       ");
        if (o->letter)
            printf("-%c%s%s, ", o->letter, o->meta ? " " : "", o->meta ? o->meta : "");
        printf("--%s%s%s\n", o->name, o->meta ? "=" : "", o->meta ? o->meta : "");
        print_indented(o->help);
    }
    printf("\n");
}

void options_print_help(bool launch)
{
    const char *const groups[] = {SIZE, PROGRAM, MEET, FAIL, LOGS, OTHER};
    const char *name = launch ? "launch" : "torchrun";

    printf("NAME\n  %s - start the ranks of a distributed training run and watch over them\n\n", name);
    printf("SYNOPSIS\n  %s [OPTIONS] PROGRAM [ARGUMENTS...]\n\n", name);
    printf(
        "DESCRIPTION\n"
        "  Starts PROGRAM once per rank with RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR,\n"
        "  MASTER_PORT and torchrun's other variables set. A PROGRAM that is a file or folder of Python's, "
        "or\n"
        "  follows -m, is run by Python ($PYTHON_EXEC, else python3 or python), any other is an executable.\n"
        "  The first rank that fails stops the others: SIGTERM, then SIGKILL. They are started again up to\n"
        "  --max-restarts times. SIGTERM and SIGINT are passed on, and the ranks get --shutdown-timeout to "
        "save.\n"
        "  In ARGUMENTS, ${local_rank} and $local_rank stand for the rank's number on its node.\n\n"
        "OPTIONS\n"
        "  Words may be joined by - or by _, values by = or by a space. An option that is not given takes "
        "its\n"
        "  value from the environment: --nproc-per-node from PET_NPROC_PER_NODE, and so on.\n\n");
    for (size_t i = 0; i < ARRAY_LEN(groups); i++)
        print_group(groups[i]);
    printf(
        "ENVIRONMENT\n"
        "  TORCHKEEPER_PROGRESS_PORT=PORT\n"
        "       Serve what is known of the training's progress there, to anybody: GET /progress (JSON) and\n"
        "       /metrics (Prometheus). It is read from the output of rank 0 and from its progress file.\n"
        "  TORCHKEEPER_PROGRESS_FILE=FILE\n"
        "       Where rank 0 may leave its progress, as a JSON object with any of step, totalSteps, epoch,\n"
        "       totalEpochs, percent, loss and samplesPerSecond. By default, while progress is served, a "
        "file\n"
        "       in a folder of the run; ranks find its name in this variable.\n"
        "  TORCHKEEPER_PROGRESS_TIMEOUT=SECONDS\n"
        "       A run in which no rank of any node shows a sign of life for so long hangs: signs are "
        "output, a change\n"
        "       of the progress file, and steps and collective calls of this project's trainer. It is "
        "ended, the rank\n"
        "       that holds up the others is named, and its node ends with 138, whatever --max-restarts "
        "says. All\n"
        "       nodes need it, with the same value. Without it a run may hang for ever.\n"
        "  TORCHKEEPER_JOB_KEY=DIGITS\n"
        "       64 hexadecimal digits, the same on all nodes: who does not have them takes no part in the "
        "run, "
        "even\n"
        "       with its --rdzv-id. Ranks do not find it in their environment.\n\n");
    printf("EXIT STATUS\n"
           "  0 when every rank ended with 0. Else the status of the rank that failed first (of the first "
           "that did\n"
           "  not fail because of another: 140 is \"a peer was lost\"), 128 + n when signal n killed it. 143 "
           "after\n"
           "  SIGTERM, 130 after SIGINT. 2: wrong usage. 1: the program cannot be started.\n"
           "  With several nodes, one on which nothing failed by itself ends with 140 and tells what did, "
           "where;\n"
           "  138: too few nodes came, this machine lacks memory, processes or descriptors, or the run hung "
           "because\n"
           "  of a rank here (TORCHKEEPER_PROGRESS_TIMEOUT).\n\n"
           "EXAMPLES\n"
           "  %s --nproc-per-node=4 trainer mnist-cnn\n"
           "  %s --standalone --nproc-per-node=gpu train.py --epochs 10\n"
           "  %s --nnodes=2 --node-rank=1 --master-addr=10.0.0.1 --nproc-per-node=8 train.py\n"
           "  %s --nnodes=2:4 --rdzv-backend=c10d --rdzv-endpoint=10.0.0.1 --rdzv-id=7 train.py\n",
           name, name, name, name);
}
