/* watchload.c - what `kubectl ptj watch` costs: runs it on a terminal against a fake API server with jobs that change.
 *
 * Usage: watchload KUBECTL-PTJ [JOBS] [PERIOD_S] [SECONDS] [--show]       (500, 10 and 30)
 * Each job changes its status every PERIOD_S seconds, one after the other. After the first 3 s, in which all is listed, the
 * program's CPU time and that of its kubectl ($KUBECTL, or of $PATH) are taken for SECONDS, and their memory at the end. --show: pass its output on to the terminal that this runs on, without an end.
 */
#include "common/clock.h"
#include "common/sv.h"
#include "tests/fakes/apiserver.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS_MAX = 5000, COLUMNS = 150, ROWS = 50, WARM_UP_MS = 3000 };

static const char GROUP[] = "/apis/batch.tensorstack.dev/v1beta1";

struct load {
    struct fake_apiserver *server;
    int64_t jobs, period_s, seconds;
    bool show;
    char config[64];
    long bytes, reads;
    int64_t changes;
};

static void put_job(struct load *l, int64_t i, int64_t round)
{
    char path[256], text[2048], time[CLOCK_RFC3339_BYTES];
    const long long percent = (i + round) % 101;

    clock_rfc3339(clock_system().wall_ms(NULL), false, time);
    snprintf(path, sizeof(path), "%s/namespaces/team/pytorchtrainingjobs/train-%04lld", GROUP, (long long)i);
    snprintf(
        text, sizeof(text),
        "{\"apiVersion\":\"batch.tensorstack.dev/v1beta1\",\"kind\":\"PyTorchTrainingJob\",\"metadata\":{"
        "\"name\":\"train-%04lld\",\"namespace\":\"team\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},"
        "\"spec\":{\"replicaSpecs\":[{\"type\":\"node\",\"replicas\":2,\"template\":{\"spec\":{"
        "\"containers\":"
        "[{\"name\":\"pytorch\",\"image\":\"pytorch\",\"command\":[\"python\",\"train.py\"]}]}}}]},"
        "\"status\":{\"phase\":\"Running\",\"ready\":\"2/2\",\"restarts\":0,\"progress\":{\"time\":\"%s\","
        "\"step\":%lld,\"totalSteps\":10000,\"percent\":%lld,\"etaSeconds\":%lld,\"loss\":%.4f}}}",
        (long long)i, time, percent * 100, percent, (100 - percent) * 60, 2.0 / (1.0 + (double)percent / 20));
    if (!fake_put(l->server, path, text))
        abort();
}

static void write_config(struct load *l)
{
    FILE *f;

    snprintf(l->config, sizeof(l->config), "/tmp/watchload.XXXXXX");
    const int fd = mkstemp(l->config);
    if (fd < 0 || !(f = fdopen(fd, "w")))
        abort();
    fprintf(
        f,
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: k\n  cluster: {server: '%s'}\n"
        "contexts:\n- name: c\n  context: {cluster: k, user: u, namespace: team}\nusers:\n- name: u\n"
        "  user: {token: t}\n",
        fake_apiserver_url(l->server));
    fclose(f);
}

static pid_t start(const struct load *l, const char *program, int *ret_fd)
{
    struct winsize size = {.ws_col = COLUMNS, .ws_row = ROWS};

    if (l->show)
        (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    const pid_t pid = forkpty(ret_fd, NULL, NULL, &size);
    if (pid == 0) {
        setenv("KUBECONFIG", l->config, 1);
        setenv("TERM", "xterm-256color", 1);
        execl(program, program, "watch", (char *)NULL);
        _exit(127);
    }
    return pid;
}

/* The process that kubectl-ptj runs, which is kubectl. */
static pid_t child_of(pid_t pid)
{
    char path[64];
    int child = 0;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *f = fopen(path, "r");
    if (!f || fscanf(f, "%d", &child) != 1)
        abort();
    fclose(f);
    return child;
}

static long resident_kib(pid_t pid)
{
    char path[64], line[256];
    long kib = 0;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    while (f && !kib && fgets(line, sizeof(line), f))
        sscanf(line, "VmRSS: %ld", &kib);
    if (f)
        fclose(f);
    return kib;
}

/* CPU time of a process in milliseconds. */
static double cpu_ms(pid_t pid)
{
    char path[64], line[1024] = "";
    unsigned long user = 0, kernel = 0;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (!f || !fgets(line, sizeof(line), f))
        abort();
    fclose(f);
    const char *behind = strrchr(line, ')');
    if (!behind ||
        sscanf(behind, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel) != 2)
        abort();
    return 1000.0 * (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

/* Change jobs in turn and read what the program draws until then. */
static void run_until(struct load *l, int fd, int64_t end_ms)
{
    const int64_t begin_ms = clock_mono_ms();
    int64_t done = 0, now;
    char bytes[65536];

    while ((now = clock_mono_ms()) < end_ms) {
        const int64_t due = (now - begin_ms) * l->jobs / (l->period_s * 1000);
        for (; done < due; done++, l->changes++)
            put_job(l, l->changes % l->jobs, 1 + l->changes / l->jobs);
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 10) <= 0)
            continue;
        const ssize_t n = read(fd, bytes, sizeof(bytes));
        if (n <= 0)
            return;
        l->bytes += n;
        l->reads++;
        if (l->show && write(STDOUT_FILENO, bytes, (size_t)n) < 0)
            return;
    }
}

static int measure(struct load *l, const char *program)
{
    int fd = -1, status;

    write_config(l);
    const pid_t pid = start(l, program, &fd);
    if (pid < 0)
        abort();
    run_until(l, fd, clock_mono_ms() + WARM_UP_MS);
    l->bytes = l->reads = 0;
    l->changes = 0;
    const pid_t kubectl = child_of(pid);
    const double before = cpu_ms(pid), kubectl_before = cpu_ms(kubectl);
    const int64_t begin_ms = clock_mono_ms();
    run_until(l, fd, l->show ? INT64_MAX : begin_ms + l->seconds * 1000);
    const double wall = (double)(clock_mono_ms() - begin_ms), used = cpu_ms(pid) - before;
    const double kubectl_used = cpu_ms(kubectl) - kubectl_before;
    printf("%lld jobs, %.1f changes/s: %.2f %% of a core, %.1f kB/s to the terminal, %.1f reads/s\n",
           (long long)l->jobs, (double)l->changes * 1000 / wall, 100 * used / wall, (double)l->bytes / wall,
           (double)l->reads * 1000 / wall);
    printf("kubectl: %.2f %% of a core; memory: %ld KiB and kubectl's %ld KiB\n", 100 * kubectl_used / wall,
           resident_kib(pid), resident_kib(kubectl));
    kill(pid, SIGTERM);
    close(fd);
    waitpid(pid, &status, 0);
    unlink(l->config);
    return 100 * used / wall <= 5 ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct load l = {.jobs = 500, .period_s = 10, .seconds = 30};
    int64_t *const numbers[] = {&l.jobs, &l.period_s, &l.seconds};

    if (argc < 2) {
        fputs("usage: watchload KUBECTL-PTJ [JOBS] [PERIOD_S] [SECONDS] [--show]\n", stderr);
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "--show"))
            l.show = true;
        else if (i > 4 || !sv_i64(sv_from(argv[i]), 1, i == 2 ? JOBS_MAX : 86400, numbers[i - 2]))
            return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    l.server = fake_apiserver_start();
    fake_add_kind(l.server, GROUP, "pytorchtrainingjobs", "PyTorchTrainingJob");
    for (int64_t i = 0; i < l.jobs; i++)
        put_job(&l, i, 0);
    const int status = measure(&l, argv[1]);
    fake_apiserver_stop(l.server);
    return status;
}
