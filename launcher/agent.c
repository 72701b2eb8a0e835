/* agent.c - the launcher's main loop: start ranks, watch them, restart or end. */
#include "common/clock.h"
#include "common/contract.h"
#include "common/fsutil.h"
#include "host/rank_contract.h"
#include "launcher/agent_state.h"
#include "launcher/process.h"
#include "launcher/program.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const char *random_id(struct arena *a)
{
    unsigned long long bits = (unsigned long long)clock_mono_ms(); /* if getrandom is not available */

    (void)!getrandom(&bits, sizeof(bits), 0);
    return arena_printf(a, "%016llx", bits);
}

/* Put the job's key into a memory file for the ranks. Without the key they would check the run id only, so a
 * failure is an error. */
static int keep_key(struct agent *g, struct err *err)
{
    const struct jobkey *key = &g->options->meeting.node.key;

    if (!key->has)
        return 0;
    g->key_file = memory_file_make(CONTRACT_KEY_FILE_NAME, sizeof(key->bytes), g->identity.key_file);
    if (g->key_file >= 0 && fs_write_all(g->key_file, key->bytes, sizeof(key->bytes)) == 0)
        return 0;
    return err_errno(err, ERR_FATAL, errno,
                     "cannot keep the key of the job for the ranks (let the container call memfd_create, or "
                     "set " CONTRACT_ENV_JOB_KEY " to \"\" on all nodes): memory file");
}

static void prepare(struct agent *g, const struct options *o, char *const *env)
{
    *g = (struct agent){.options = o, .env = env, .signals = -1, .port_held = -1, .key_file = -1};
    g->identity.run_id = o->run_id ? o->run_id : random_id(&g->arena);
    g->identity.master_addr = o->master_addr;
    g->identity.nodes = 1;
    g->identity.world = g->identity.role_world = o->nproc;
    g->kept_data = memory_file_make(CONTRACT_KEPT_DATA_NAME, 0, g->identity.kept_data);
    g->rank_state = rank_state_make(o->nproc, &g->slots, g->identity.rank_state);
    straggler_init(&g->straggler, o->nproc, &g->arena);
    gethostname(g->host, sizeof(g->host) - 1);
    g->report = getenv(CONTRACT_ENV_TERMINATION_LOG);
    if (g->report && !*g->report)
        g->report = NULL;
}

void agent_say(struct agent *g, const char *fmt, ...)
{
    const bool judges = g->hang.stage == HANG_EXAMINING || g->hang.stage == HANG_ABORTING;
    va_list args;

    va_start(args, fmt);
    logs_say(&g->logs, arena_vprintf(&g->arena, fmt, args), judges ? 0 : AGENT_FLUSH_MS);
    va_end(args);
}

static void tell_omp(struct agent *g)
{
    if (env_sets_omp(g->options, g->env))
        agent_say(
            g,
            "*****************************************\n"
            "OMP_NUM_THREADS is not set: each of the %d ranks gets OMP_NUM_THREADS=1, so that they do not "
            "take\n"
            "each other's CPUs. Set it yourself if a rank should use more threads.\n"
            "*****************************************\n",
            g->options->nproc);
}

static int open_signals(struct agent *g, struct err *err)
{
    sigset_t set = g->options->signals;

    sigaddset(&set, SIGCHLD);
    g->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return g->signals < 0 ? err_errno(err, ERR_FATAL, errno, "signalfd") : 0;
}

static int start_rank(struct agent *g, const char *python, int local, struct arena *a, struct err *err)
{
    const struct log_rank *log = &g->logs.ranks[local];
    const struct process_spec spec = {
        .words = env_arguments(g->options, local, python, a),
        .env = env_build(g->options, &g->identity, local, log->error_file, g->env, a),
        .out = log->streams[0].child,
        .err = log->streams[1].child,
        .ignored = g->options->ignored,
    };
    pid_t pid = process_start(&spec, err);

    logs_started(&g->logs, local);
    if (pid < 0)
        return -1;
    round_started(&g->round, local, g->identity.first_rank + local, pid, log->error_file);
    return 0;
}

/* Choose MASTER_PORT: the leader's, the one given by option, or a free one for this round. */
static int choose_port(struct agent *g, struct err *err)
{
    if (g->nodes.meet)
        return g->identity.master_port ? 0
                                       : err_set(err, ERR_FATAL, "node 0 found no free port for MASTER_PORT");
    g->identity.master_port = g->options->master_port;
    return g->identity.master_port ? 0 : agent_hold_port(&g->identity.master_port, &g->port_held, err);
}

int agent_start_round(struct agent *g, struct err *err)
{
    const struct options *o = g->options;
    cleanup_arena struct arena a = {0};
    const char *python = "";

    if (choose_port(g, err) < 0)
        return -1;
    if (o->program_kind != PROGRAM_EXECUTABLE && program_python(&python, err) < 0)
        return -1;
    if (logs_begin(&g->logs, g->nodes.meet ? (int)g->nodes.round : g->identity.restart_count,
                   g->identity.first_rank, err) < 0)
        return -1;
    process_guard(CONTRACT_ENV_KEPT_DATA, g->identity.kept_data);
    round_begin(&g->round); /* it resets the workers, which point to these texts */
    arena_release(&g->errors);
    rank_state_clear(g->slots, o->nproc);
    straggler_begin(&g->straggler, g->identity.first_rank);
    g->look_ms = clock_mono_ms() + AGENT_LOOK_MS;
    tracker_begin(&g->tracker, g->identity.first_rank == 0, g->identity.restart_count);
    for (int i = 0; i < o->nproc; i++)
        if (start_rank(g, python, i, &a, err) < 0) {
            round_kill(&g->round);
            process_sweep();
            return -1;
        }
    agent_hang_begin(g);
    return 0;
}

/* Handle a signal that ends the run: send it to the ranks. A second one, SIGINT or SIGQUIT, kills them. */
static void take_signal(struct agent *g, int signal)
{
    if (g->signal && (signal == SIGINT || signal == SIGQUIT) && !round_over(&g->round))
        round_kill(&g->round);
    round_stop(&g->round, signal);
    g->signal = g->signal ? g->signal : signal;
}

static void read_signals(struct agent *g)
{
    struct signalfd_siginfo info;

    while (read(g->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
        if (info.ssi_signo != SIGCHLD)
            take_signal(g, (int)info.ssi_signo);
    round_reap(&g->round);
}

/* How long poll may sleep, in milliseconds; -1: no limit. */
static int wait_ms(const struct agent *g)
{
    const bool over = round_over(&g->round);
    const int64_t due_ms[] = {over ? 0 : g->round.deadline_ms, over ? 0 : g->look_ms, g->waiting.due_ms,
                              agent_hang_due_ms(g)};
    int64_t first_ms = INT64_MAX;

    for (size_t i = 0; i < ARRAY_LEN(due_ms); i++)
        if (due_ms[i] && due_ms[i] < first_ms)
            first_ms = due_ms[i];
    const int64_t left_ms = first_ms - clock_mono_ms();
    return first_ms == INT64_MAX ? -1 : left_ms < 0 ? 0 : left_ms < INT_MAX ? (int)left_ms : INT_MAX;
}

/* Report a rank that is slower than the others. */
static void look_at_steps(struct agent *g)
{
    struct straggler *s = &g->straggler;

    if (!g->slots)
        return;
    if (straggler_measure(s, g->slots) && g->nodes.meet)
        meet_report_steps(g->nodes.meet, &s->steps);
    struct steps run = s->steps;
    if (g->nodes.meet && !meet_steps(g->nodes.meet, &run))
        return; /* the leader's host reports */
    straggler_judge(s, &run);
    tracker_straggler(&g->tracker, (int)s->rank, s->ratio);
    if (straggler_due(s, clock_mono_ms()))
        agent_say(g, "torchrun: rank %d takes %.2f times the median step time: the other ranks wait for it\n",
                  (int)s->rank, s->ratio);
}

static void look_at_what_ranks_left(struct agent *g, int64_t now_ms)
{
    if (round_over(&g->round) || now_ms < g->look_ms)
        return;
    g->look_ms = now_ms + AGENT_LOOK_MS;
    tracker_look(&g->tracker, now_ms);
    look_at_steps(g);
}

void agent_turn(struct agent *g)
{
    int n = logs_poll(&g->logs, g->pfds);

    g->pfds[n] = (struct pollfd){.fd = g->signals, .events = POLLIN};
    g->pfds[n + 1] = (struct pollfd){.fd = g->nodes.meet ? meet_fd(g->nodes.meet) : -1, .events = POLLIN};
    poll(g->pfds, (nfds_t)n + 2, wait_ms(g));
    if (logs_turn(&g->logs, g->pfds, n))
        usleep(LOGS_NAP_US);
    look_at_what_ranks_left(g, clock_mono_ms());
    read_signals(g);
    if (g->nodes.meet)
        meet_look(g->nodes.meet, g->nodes.view);
    agent_read_ranks(g);
    round_step(&g->round);
    agent_hang_step(g);
}

/* After a round: 1 to start another, 0 when the run ends with *status. */
static int judge(struct agent *g, bool hung, int *status)
{
    const struct options *o = g->options;
    char how[48], name[32];
    int unsure, root = exit_root_cause(g->round.workers, g->round.n, &unsure);
    const bool restarts_left = !hung && g->identity.restart_count < o->max_restarts &&
                               (root < 0 || !contract_is_final(g->round.workers[root].status));

    if (g->signal && (root < 0 || restarts_left)) {
        agent_say(g, "torchrun: stopped by %s\n", exit_signal_name(g->signal, name));
        *status = EXIT_CODE_SIGNAL_BASE + g->signal;
        return 0;
    }
    if (root < 0) {
        *status = EXIT_CODE_OK;
        return 0;
    }
    const struct exit_worker *w = &g->round.workers[root];
    if (restarts_left) {
        g->identity.restart_count++;
        agent_say(g, "torchrun: rank %d (pid %d) ended with %s: restart %d of %d\n", w->rank, (int)w->pid,
                  exit_describe(w->status, how), g->identity.restart_count, o->max_restarts);
        return 1;
    }
    agent_read_messages(g);
    agent_report(g, g->round.workers, g->round.n, root);
    *status = exit_status_code(w->status);
    return 0;
}

/* With one node: rounds until one succeeds or no restart is left. */
static int run_rounds(struct agent *g, int *status, struct err *err)
{
    int again;

    do {
        if (agent_start_round(g, err) < 0)
            return -1;
        while (!round_over(&g->round))
            agent_turn(g);
        logs_end(&g->logs, AGENT_FLUSH_MS);
        const bool hung = agent_hang_end(g);
        agent_hang_blame(g);
        process_sweep();
        again = judge(g, hung, status);
    } while (again);
    return 0;
}

int agent_run(const struct options *o, char *const *env)
{
    struct agent g;
    struct err err = {0};
    int rc, status = EXIT_CODE_ERROR;

    prepare(&g, o, env);
    round_init(&g.round, o->nproc, o->shutdown_timeout_ms, &g.arena);
    /* Open the logs first, because error messages go through them. */
    if ((rc = logs_open(&g.logs, o, g.identity.run_id, &err)) == 0 && (rc = open_signals(&g, &err)) == 0 &&
        (rc = keep_key(&g, &err)) == 0) {
        g.logs.watches = g.report != NULL;
        agent_hang_open(&g);
        if (tracker_open(&g.tracker, &g.logs, &err) < 0)
            agent_say(&g, "torchrun: %s\n", err.msg);
        g.identity.progress_file = g.tracker.path;
        g.pfds = arena_array(&g.arena, (size_t)logs_poll_max(&g.logs) + 2, struct pollfd);
        tell_omp(&g);
        rc = o->nnodes > 1 ? agent_run_nodes(&g, &status, &err) : run_rounds(&g, &status, &err);
    }
    if (rc < 0)
        agent_say(&g, "torchrun: %s\n", err.msg);
    else if (status == EXIT_CODE_OK)
        agent_leave_progress(&g);
    tracker_close(&g.tracker);
    logs_close(&g.logs);
    rank_state_unmap(g.slots, o->nproc);
    close_fd(&g.port_held);
    close_fd(&g.signals);
    close_fd(&g.kept_data);
    close_fd(&g.key_file);
    close_fd(&g.rank_state);
    arena_release(&g.errors);
    arena_release(&g.arena);
    return rc < 0 ? exit_error_code(&err) : status;
}
