/* pollload.c - run the operator on jobs that train and report their progress, and print what that costs its thread.
 *
 * Usage: pollload [JOBS] [SECONDS]       (500 and 30)
 * Their pods are one server, a child on loopback; the API server is the tests' (tests/fakes/apiserver.h), in a thread of its
 * own. The first 20 s, in which it lists and polls everything for the first time, are not counted.
 */
#include "common/contract.h"
#include "common/sv.h"
#include "kube/http.h"
#include "operator/controller.h"
#include "tests/fakes/apiserver.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS_MAX = 5000, SECONDS_MAX = 3600, NAMESPACES = 50, WARM_UP_S = 20 };

/* Each job takes ten hours, and is somewhere in them. */
enum { JOB_STEPS = 360000, STEPS_PER_S = 10 };

static unsigned port;

static int64_t where(const char *uid)
{
    uint64_t hash = 5381;

    for (const char *c = uid; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    return (int64_t)((hash + (uint64_t)clock_mono_ms() * STEPS_PER_S / 1000) % JOB_STEPS);
}

/* One connection after the other: a request, an answer with the UID that its path names. */
static _Noreturn void serve(int listener)
{
    for (;;) {
        char request[2048];
        char uid[64] = "";
        char body[512];
        char answer[1024];
        int fd = accept(listener, NULL, NULL);
        ssize_t n = fd < 0 ? -1 : recv(fd, request, sizeof(request) - 1, 0);
        if (n > 0) {
            request[n] = '\0';
            (void)sscanf(request, "GET /%60s", uid);
            int64_t step = where(uid);
            int len = snprintf(
                body, sizeof(body),
                "{\"job\":\"%s\",\"attempt\":0,\"restarts\":0,\"time\":\"2026-11-24T10:00:00Z\","
                "\"step\":%lld,\"totalSteps\":%d,\"epoch\":1,\"totalEpochs\":3,\"percent\":%.1f,"
                "\"etaSeconds\":532,\"loss\":0.531,\"samplesPerSecond\":812.5}",
                contract_job_mark(uid), (long long)step, JOB_STEPS, 100.0 * (double)step / JOB_STEPS);
            int all = snprintf(answer, sizeof(answer),
                               "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                               "Connection: close\r\n\r\n%s",
                               len, body);
            (void)send(fd, answer, (size_t)all, MSG_NOSIGNAL);
        }
        if (fd >= 0)
            close(fd);
    }
}

/* Set `port`; -1 with errno. */
static pid_t start_server(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 64) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) < 0)
        return -1;
    port = ntohs(at.sin_port);
    pid_t pid = fork();
    if (pid == 0)
        serve(fd);
    close(fd);
    return pid;
}

static bool url(const char *ip, char out[static PODADDRESS_URL_BYTES])
{
    snprintf(out, PODADDRESS_URL_BYTES, "http://127.0.0.1:%u/%s", port, ip);
    return true;
}

static void stop(void *ctx)
{
    kube_loop_stop(ctx);
}

static double cpu_s(void)
{
    struct rusage u;

    getrusage(RUSAGE_THREAD, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

#define META "\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\",\"generation\":1"

/* A job and its one pod, which run. */
static bool put_job(struct fake_apiserver *api, const char *ns, const char *name)
{
    char path[256];
    char text[4096];

    snprintf(path, sizeof(path), "/apis/" TRAINJOB_API_VERSION "/namespaces/%s/" TRAINJOB_PLURAL "/%s", ns,
             name);
    snprintf(
        text, sizeof(text),
        "{\"apiVersion\":\"" TRAINJOB_API_VERSION "\",\"kind\":\"" TRAINJOB_KIND "\"," META
        "},\"spec\":{\"torchrunConfig\":{\"enabled\":true},\"replicaSpecs\":[{\"type\":\"node\",\"template\":"
        "{"
        "\"spec\":{\"containers\":[{\"name\":\"pytorch\",\"image\":\"i\",\"args\":[\"train.py\"]}]}}}]}}",
        ns, name);
    if (!fake_put(api, path, text))
        return false;
    cleanup_json cJSON *job = fake_json(api, path);
    const char *uid = json_meta(job, "uid");
    snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s-node-0", ns, name);
    snprintf(text, sizeof(text),
             "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s-node-"
             "0\",\"labels\":{\"" LABEL_JOB "\":\"%s\",\"" LABEL_TYPE "\":\"node\",\"" LABEL_INDEX
             "\":\"0\",\"" LABEL_ATTEMPT
             "\":\"0\"},\"ownerReferences\":[{\"apiVersion\":\"" TRAINJOB_API_VERSION
             "\",\"kind\":\"" TRAINJOB_KIND "\",\"name\":\"%s\",\"uid\":\"%s\",\"controller\":true}]},"
             "\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":"
             "\"pytorch\"}]},\"status\":{\"phase\":\"Running\",\"podIP\":\"%s\",\"containerStatuses\":[{"
             "\"name\":\"pytorch\","
             "\"state\":{\"running\":{}}}]}}",
             ns, name, name, name, uid, uid);
    return fake_put(api, path, text);
}

struct mark {
    struct kube_loop *loop;
    struct controller *controller;
    struct fake_apiserver *api;
    double cpu_s;
    int64_t ms;
    struct controller_counts counts;
    int patches;
};

static void take_mark(void *ctx)
{
    struct mark *m = ctx;

    m->cpu_s = cpu_s();
    m->ms = clock_mono_ms();
    m->counts = controller_counts(m->controller);
    m->patches = fake_log_count(m->api, "PATCH", NULL);
}

static void tell(const struct mark *from, const struct mark *to, int64_t jobs)
{
    double took_s = (double)(to->ms - from->ms) / 1000;

    printf("%lld jobs, %.1f s: %llu answers, %llu failed, %llu dropped; %llu passes, %d writes; CPU %.3f s, "
           "%.2f %% of a "
           "core\n",
           (long long)jobs, took_s, (unsigned long long)(to->counts.polls.ok - from->counts.polls.ok),
           (unsigned long long)(to->counts.polls.failed - from->counts.polls.failed),
           (unsigned long long)(to->counts.polls.dropped - from->counts.polls.dropped),
           (unsigned long long)(to->counts.passes - from->counts.passes), to->patches - from->patches,
           to->cpu_s - from->cpu_s, 100 * (to->cpu_s - from->cpu_s) / took_s);
}

static int measure(struct fake_apiserver *api, int64_t jobs, int64_t seconds, struct err *err)
{
    cleanup_kube_loop struct kube_loop *l = kube_loop_new(clock_system(), err);
    cleanup_kube_config struct kube_config config = {.server = strdup(fake_apiserver_url(api)),
                                                     .namespace_name = strdup("ns")};
    const struct log log = {STDERR_FILENO, LOG_WARN, clock_system()};

    config.token.bytes = (struct buf)BUF_INIT(16);
    if (!l || buf_puts(&config.token.bytes, "token", err) < 0)
        return -1;
    cleanup_http struct http *http = http_new(l, &config, "pollload", err);
    if (!http)
        return -1;
    const struct kube_transport transport = http_transport(http);
    struct kube_recorder *recorder = kube_recorder_new(l, &transport, "pollload");
    struct controller *c =
        controller_new(l, &transport, recorder, &log,
                       &(struct controller_options){
                           .tensorboard_image = "tb", .launcher_image = "l", .seed = 1, .progress_url = url});
    struct mark from = {.loop = l, .controller = c, .api = api};
    struct mark to = from;
    struct kube_loop_timer begin = {.fire = take_mark, .ctx = &from};
    struct kube_loop_timer end = {.fire = stop, .ctx = l};
    kube_loop_timer_set(l, &begin, clock_mono_ms() + WARM_UP_S * 1000);
    kube_loop_timer_set(l, &end, clock_mono_ms() + (WARM_UP_S + seconds) * 1000);
    int rc = kube_loop_run(l, err);
    take_mark(&to);
    tell(&from, &to, jobs);
    controller_free(c);
    kube_recorder_free(recorder);
    return rc;
}

int main(int argc, char **argv)
{
    int64_t jobs = 500;
    int64_t seconds = 30;
    struct err err;

    if (argc > 3 || (argc > 1 && !sv_i64(sv_from(argv[1]), 1, JOBS_MAX, &jobs)) ||
        (argc > 2 && !sv_i64(sv_from(argv[2]), 1, SECONDS_MAX, &seconds))) {
        fprintf(stderr, "usage: pollload [JOBS 1..%d] [SECONDS 1..%d]\n", JOBS_MAX, SECONDS_MAX);
        return 2;
    }
    pid_t server = start_server();
    if (server < 0) {
        perror("pollload: server");
        return 1;
    }
    struct fake_apiserver *api = fake_apiserver_start();
    fake_add_kind(api, "/apis/" TRAINJOB_API_VERSION, TRAINJOB_PLURAL, TRAINJOB_KIND);
    int rc = 0;
    err_set(&err, ERR_FATAL, "the API server takes no job");
    for (int64_t i = 0; i < jobs && rc == 0; i++) {
        char ns[32];
        char name[32];
        snprintf(ns, sizeof(ns), "ns-%lld", (long long)(i % NAMESPACES));
        snprintf(name, sizeof(name), "j%lld", (long long)i);
        rc = put_job(api, ns, name) ? 0 : -1;
    }
    if (rc == 0)
        rc = measure(api, jobs, seconds, &err);
    fake_apiserver_stop(api);
    kill(server, SIGKILL);
    (void)waitpid(server, NULL, 0);
    if (rc < 0)
        fprintf(stderr, "pollload: %s\n", err.msg);
    return rc < 0;
}
