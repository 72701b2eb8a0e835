/* test_secrets.c - nothing of a credential comes out of the program, whatever goes wrong: at its most talkative, with a
 * server that refuses, breaks off or is none, and with credentials that cannot be used.
 *
 * usage: test_secrets <ptj-operator>
 */
#include "common/fsutil.h"
#include "lab.h"
#include "process.h"
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *program;

/* Each token has this word in it. */
#define SECRET "hush"

struct row {
    const char *token;
    const char *said; /* the log line that shows how far it came */
    bool sent;        /* the server got it */
    bool tls;         /* https to a server that does not speak it */
    struct fake_fault_plan fault;
};

static const struct row ROWS[] = {
    /* The server has them, and does not like them. */
    {.token = "hush-1", .said = "401", .sent = true, .fault = {.status = 401}},
    {.token = "hush-2", .said = "500", .sent = true, .fault = {.status = 500}},
    {.token = "hush-3", .said = "watch failed", .sent = true, .fault = {.fault = FAKE_DROP_BEFORE}},
    {.token = "hush-4", .said = "watch failed", .sent = true, .fault = {.fault = FAKE_GARBAGE_BODY}},
    /* What cannot be a token. */
    {.token = "hush\nX-More: header", .said = "token"},
    {.token = "hush \xc3\xa9", .said = "token"},
    {.token = "hush-5", .said = "watch failed", .tls = true},
};

struct run {
    struct fake_apiserver *server;
    char token[128];
    struct process process;
};

static void start(struct run *r, const struct row *row)
{
    char server[64], token[160];
    struct err err;

    assert_int_equal(fs_write_atomic(r->token, row->token, strlen(row->token), &err), 0);
    snprintf(server, sizeof(server), "--server=http%s%s", row->tls ? "s" : "",
             strstr(fake_apiserver_url(r->server), "://"));
    snprintf(token, sizeof(token), "--token-file=%s", r->token);
    process_start(&r->process, (const char *[]){program, server, token, "--log-level=debug",
                                                "--metrics-bind-address=127.0.0.1:0",
                                                "--health-probe-bind-address=127.0.0.1:0",
                                                "--leader-elect-namespace=sys", NULL});
}

static bool has_come(struct fake_apiserver *server, const char *token)
{
    struct fake_request q;

    for (int i = 0; fake_log_at(server, i, &q); i++)
        if (strstr(q.authorization, token))
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
    start(r, row);
    process_until_says(&r->process, row->said);
    while (row->sent && !has_come(r->server, row->token)) {
        assert_false(process_has_ended(&r->process));
        usleep(5000);
    }
    if (!process_has_ended(&r->process)) {
        assert_int_equal(kill(r->process.pid, SIGTERM), 0);
        (void)process_wait(&r->process);
    }
    if (process_says(&r->process, SECRET))
        fail_msg("the log tells the token: %s", row->token);
    fake_apiserver_stop(r->server);
}

static void test_no_secret_is_told(void **state)
{
    const char *dir = *state;
    struct run r = {0};

    snprintf(r.token, sizeof(r.token), "%s/token", dir);
    snprintf(r.process.log, sizeof(r.process.log), "%s/out", dir);
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++)
        try_row(&r, &ROWS[i]);
    unlink(r.token);
    process_remove(&r.process);
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
