/* test_program.c - the program itself: it works on a job, ends after a signal, and reports what is wrong with its
 * flags.
 *
 * usage: test_program <ptj-operator>
 */
#include "lab.h"
#include "process.h"
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *program;

static struct process named(const char *dir, const char *name)
{
    struct process p = {0};

    snprintf(p.log, sizeof(p.log), "%s/%s", dir, name);
    return p;
}

static void test_flags(void **state)
{
    static const struct {
        const char *flags[2];
        int exit_code;
        const char *says;
    } ROWS[] = {
        {{"--help"}, 0, "SIGTERM"},
        {{"--leader-elect=maybe"}, 2, "expected true or false"},
        {{"--server=http://127.0.0.1:1", "--token-file=/nonexistent/token"}, 1, "/nonexistent/token"}};

    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct process p = named(*state, "out");
        process_start(&p, (const char *[]){program, ROWS[i].flags[0], ROWS[i].flags[1], NULL});
        assert_int_equal(process_wait(&p), ROWS[i].exit_code);
        assert_true(process_says(&p, ROWS[i].says));
        process_remove(&p);
    }
}

static void add_job(struct fake_apiserver *server, const char *name)
{
    char path[200];
    char text[512];

    snprintf(path, sizeof(path), "%.*s%s", (int)strlen(LAB_JOB) - 1, LAB_JOB, name);
    snprintf(text, sizeof(text),
             "{'apiVersion':'" TRAINJOB_API_VERSION "','kind':'" TRAINJOB_KIND
             "','metadata':{'name':'%s','namespace':'ns'},'spec':{'replicaSpecs':[{'type':'node','template':{"
             "'spec':{'containers':[{'name':'c','image':'i'}]}}}]}}",
             name);
    assert_true(fake_put(server, path, text));
}

static struct fake_apiserver *start_server(void)
{
    struct fake_apiserver *server = fake_apiserver_start();

    fake_add_kind(server, "/apis/" TRAINJOB_API_VERSION, TRAINJOB_PLURAL, TRAINJOB_KIND);
    return server;
}

/* An operator whose log is dir/name. */
static struct process start_operator(const struct fake_apiserver *api, const char *dir, const char *name,
                                     const char *last_flag)
{
    struct process p = named(dir, name);
    char server[64];

    snprintf(server, sizeof(server), "--server=%s", fake_apiserver_url(api));
    process_start(&p, (const char *[]){program, server, "--metrics-bind-address=127.0.0.1:0",
                                       "--health-probe-bind-address=127.0.0.1:0", last_flag, NULL});
    return p;
}

static void assert_goes_on(struct process *p)
{
    assert_false(process_has_ended(p));
    usleep(5000);
}

static void until_pods(struct fake_apiserver *server, struct process *p, int n)
{
    while (fake_count(server, LAB_PODS) < n)
        assert_goes_on(p);
    assert_int_equal(fake_count(server, LAB_PODS), n);
}

static bool job_is_pending(struct fake_apiserver *server)
{
    cleanup_free char *text = fake_get(server, LAB_JOB);

    return text && strstr(text, "\"Pending\"") && fake_count(server, LAB_PODS) == 1;
}

static void test_works_and_leaves(void **state)
{
    struct fake_apiserver *server = start_server();

    add_job(server, "j");
    struct process p = start_operator(server, *state, "out", "--leader-elect=false");
    while (!job_is_pending(server))
        assert_goes_on(&p);
    process_end(&p);
    assert_true(process_says(&p, "\"stopped\""));
    assert_int_equal(fake_count(server, LAB_PODS), 1); /* the job continues without it */
    assert_int_equal(fake_log_count(server, NULL, "/leases"), 0);
    process_remove(&p);
    fake_apiserver_stop(server);
}

/* Two of them: the second one waits, then takes over as soon as the first one left. */
static void test_one_works_at_a_time(void **state)
{
    struct fake_apiserver *server = start_server();

    add_job(server, "j");
    struct process a = start_operator(server, *state, "out", "--leader-elect-namespace=sys");
    while (!job_is_pending(server))
        assert_goes_on(&a);
    struct process b = start_operator(server, *state, "second", "--leader-elect-namespace=sys");
    process_until_says(&b, "waiting for the lease");
    add_job(server, "k");
    until_pods(server, &a, 2);
    process_end(&a);
    add_job(server, "l");
    until_pods(server, &b, 3);
    assert_true(process_says(&b, "\"leading\""));
    cleanup_free char *lease =
        fake_get(server, "/apis/coordination.k8s.io/v1/namespaces/sys/leases/torchkeeper-operator");
    assert_non_null(lease);
    assert_non_null(strstr(lease, "\"leaseTransitions\":1"));
    process_end(&b);
    process_remove(&a);
    process_remove(&b);
    fake_apiserver_stop(server);
}

int main(int argc, char **argv)
{
    char dir[] = "/tmp/test_program.XXXXXX";
    struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_flags, dir),
        cmocka_unit_test_prestate(test_works_and_leaves, dir),
        cmocka_unit_test_prestate(test_one_works_at_a_time, dir),
    };

    if (argc != 2 || !mkdtemp(dir)) {
        fprintf(stderr, "usage: test_program <ptj-operator>\n");
        return 2;
    }
    program = argv[1];
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(dir);
    return failed;
}
