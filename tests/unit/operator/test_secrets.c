/* test_secrets.c - nothing of a credential comes out of the program, whatever goes wrong: at its most talkative, with a
 * server that refuses, breaks off or is none, and with credentials that cannot be used.
 *
 * usage: test_secrets <ptj-operator>
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/fsutil.h"
#include "lab.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *program;

/* Each credential has the first word in it; the second is that word in base64, for passwords and *-data. */
#define SECRET "hush"
#define SECRET_BASE64 "aHVza"

#define EXEC(script)                                                                                         \
    "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, args: [-c, '" script                   \
    "'], interactiveMode: Never}"
#define PLUGIN(token)                                                                                        \
    EXEC("printf %s ''{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\","      \
         "\"status\":{\"token\":\"" token "\"}}''")

struct row {
    const char *user;    /* of the kubeconfig */
    const char *cluster; /* more of it; NULL: nothing */
    const char *said;    /* what the log says of it: it came so far */
    const char *sent;    /* the header that reached the server; NULL: none did */
    bool tls;            /* https to a server that does not speak it */
    struct fake_fault_plan fault;
};

static const struct row ROWS[] = {
    /* The server has them, and does not like them. */
    {.user = "token: hush-1", .said = "401", .sent = "Bearer hush-1", .fault = {.status = 401}},
    {.user = "token: hush-2", .said = "500", .sent = "Bearer hush-2", .fault = {.status = 500}},
    {.user = "token: hush-3",
     .said = "watch failed",
     .sent = "Bearer hush-3",
     .fault = {.fault = FAKE_DROP_BEFORE}},
    {.user = "token: hush-4",
     .said = "watch failed",
     .sent = "Bearer hush-4",
     .fault = {.fault = FAKE_GARBAGE_BODY}},
    {.user = "{username: me, password: hush-5}",
     .said = "403",
     .sent = "Basic bWU6aHVzaC01",
     .fault = {.status = 403}},
    {.user = PLUGIN("hush-6"), .said = "401", .sent = "Bearer hush-6", .fault = {.status = 401}},
    /* Plugins that fail, with a credential on their lips. */
    {.user = EXEC("echo hush; exit 3"), .said = "exit code 3"},
    {.user = EXEC("echo hush"), .said = "credential plugin"},
    {.user = PLUGIN("hush\\nmore"), .said = "credential plugin"},
    {.user =
         "exec: {apiVersion: client.authentication.k8s.io/v1, command: /nonexistent/plugin, interactiveMode: "
         "Never, env: [{name: PASSWORD, value: hush}]}",
     .said = "/nonexistent/plugin"},
    /* What cannot be a credential. */
    {.user = "token: \"hush\\nX-More: header\"", .said = "token"},
    {.user = "token: \"hush", .said = "kubeconfig"},
    {.user = "{client-certificate-data: aHVzaA==, client-key-data: aHVza!}", .said = "client-key-data"},
    {.user = "{client-certificate-data: aHVzaC1jZXJ0, client-key-data: aHVzaC1rZXk=}",
     .said = "watch failed",
     .tls = true},
    /* Others on the way. */
    {.user = "token: hush-7", .said = "watch failed", .tls = true},
    {.user = "token: hush-8",
     .cluster = ", proxy-url: 'http://me:hush-9@127.0.0.1:1'",
     .said = "through the proxy"},
};

struct run {
    struct fake_apiserver *server;
    char config[128], out[128];
    pid_t pid;
    bool ended;
};

static void write_kubeconfig(const struct run *r, const struct row *row)
{
    char text[2048];
    struct err err;
    const char *address = strstr(fake_apiserver_url(r->server), "://");
    int n = snprintf(text, sizeof(text),
                     "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- name: c\n"
                     "  context: {cluster: k, user: u}\nclusters:\n- name: k\n"
                     "  cluster: {server: \"http%s%s\"%s}\nusers:\n- name: u\n  user:\n    %s\n",
                     row->tls ? "s" : "", address, row->cluster ? row->cluster : "", row->user);

    assert_in_range(n, 1, sizeof(text) - 1);
    assert_int_equal(fs_write_atomic(r->config, text, (size_t)n, &err), 0);
}

static void start(struct run *r)
{
    char config[160];

    snprintf(config, sizeof(config), "--kubeconfig=%s", r->config);
    r->ended = false;
    r->pid = fork();
    assert_true(r->pid >= 0);
    if (r->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it does not outlive a test that fails */
        int fd = open(r->out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
        execl(program, program, config, "--log-level=debug", "--metrics-bind-address=127.0.0.1:0",
              "--health-probe-bind-address=127.0.0.1:0", "--leader-elect-namespace=sys", (char *)NULL);
        _exit(127);
    }
}

static bool has_ended(struct run *r)
{
    r->ended = r->ended || waitpid(r->pid, NULL, WNOHANG) == r->pid;
    return r->ended;
}

static bool says(const struct run *r, const char *word)
{
    cleanup_buf struct buf text = BUF_INIT(8 << 20);
    struct err err;

    return fs_read(r->out, &text, &err) == 0 && strstr(buf_str(&text), word);
}

/* Until the log has it; a program that has ended says no more. */
static void until_says(struct run *r, const char *word)
{
    while (!says(r, word)) {
        if (has_ended(r) && !says(r, word)) {
            cleanup_buf struct buf text = BUF_INIT(8 << 20);
            struct err err;
            (void)!fs_read(r->out, &text, &err);
            fail_msg("expected \"%s\" in:\n%s", word, buf_str(&text));
        }
        usleep(5000);
    }
}

static bool has_come(struct fake_apiserver *server, const char *header)
{
    struct fake_request q;

    for (int i = 0; fake_log_at(server, i, &q); i++)
        if (strcmp(q.authorization, header) == 0)
            return true;
    return false;
}

static void try_row(struct run *r, const struct row *row)
{
    struct fake_fault_plan plan = row->fault;

    r->server = fake_apiserver_start();
    fake_add_kind(r->server, "/apis/" TRAINJOB_API_VERSION, TRAINJOB_PLURAL, TRAINJOB_KIND);
    if (plan.status || plan.fault)
        fake_plan_fault(r->server, &plan);
    write_kubeconfig(r, row);
    start(r);
    until_says(r, row->said);
    while (row->sent && !has_come(r->server, row->sent)) {
        assert_false(has_ended(r));
        usleep(5000);
    }
    if (!has_ended(r)) {
        assert_int_equal(kill(r->pid, SIGTERM), 0);
        assert_int_equal(waitpid(r->pid, NULL, 0), r->pid);
    }
    if (says(r, SECRET) || says(r, SECRET_BASE64))
        fail_msg("the log tells the credential of: %s", row->user);
    fake_apiserver_stop(r->server);
}

static void test_no_secret_is_told(void **state)
{
    const char *dir = *state;
    struct run r;

    snprintf(r.config, sizeof(r.config), "%s/kubeconfig", dir);
    snprintf(r.out, sizeof(r.out), "%s/out", dir);
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++)
        try_row(&r, &ROWS[i]);
    unlink(r.config);
    unlink(r.out);
}

int main(int argc, char **argv)
{
    char dir[] = "/tmp/test_secrets.XXXXXX";
    struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_no_secret_is_told, dir)};

    if (argc != 2 || !mkdtemp(dir)) {
        fprintf(stderr, "usage: test_secrets <ptj-operator>\n");
        return 2;
    }
    program = argv[1];
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(dir);
    return failed;
}
