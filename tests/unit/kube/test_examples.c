/* test_examples.c - the example controllers as programs: they converge, also when requests fail, and stop. */
#include "common/fsutil.h"
#include "common/json.h"
#include "test.h"
#include "tests/fakes/apiserver.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *podcount, *configcopy;

struct run {
    struct fake_apiserver *server;
    char config[64];
    pid_t pid;
};

static void start(struct run *r, const char *program)
{
    char text[512];
    struct err err;

    snprintf(r->config, sizeof(r->config), "/tmp/test_examples_%d", (int)getpid());
    snprintf(text, sizeof(text),
             "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
             "clusters: [{name: k, cluster: {server: '%s'}}]\n",
             fake_apiserver_url(r->server));
    assert_int_equal(fs_write_atomic(r->config, text, strlen(text), &err), 0);
    r->pid = fork();
    if (r->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it does not outlive a test that fails */
        setenv("KUBECONFIG", r->config, 1);
        execl(program, program, (char *)NULL);
        _exit(127);
    }
}

static void stop(struct run *r)
{
    int status = 0;

    assert_int_equal(kill(r->pid, SIGTERM), 0);
    assert_int_equal(waitpid(r->pid, &status, 0), r->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    unlink(r->config);
}

/* Until the string at this place of the object is `want` (NULL: until the object is gone); a minute means it never will. */
static void until(struct run *r, const char *path, const char *part, const char *key, const char *want)
{
    for (int i = 0; i < 6000; i++) {
        cleanup_json cJSON *o = fake_json(r->server, path);
        const char *got = json_str(json_find(o, (const char *[]){part, NULL}), key);
        if (want ? got && strcmp(got, want) == 0 : o == NULL)
            return;
        assert_int_equal(waitpid(r->pid, NULL, WNOHANG), 0); /* it still runs */
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    fail_msg("%s: %s.%s never became %s", path, part, key, want ? want : "nothing");
}

static void until_count(struct run *r, const char *ns, const char *count)
{
    char path[128];

    snprintf(path, sizeof(path), "/api/v1/namespaces/%s/configmaps/pod-count", ns);
    until(r, path, "data", "count", count);
}

static void test_converges(void **ctx)
{
    struct run r = {.server = fake_apiserver_start()};

    (void)ctx;
    assert_true(fake_put(r.server, "/api/v1/namespaces/one/pods/a", "{}"));
    assert_true(fake_put(r.server, "/api/v1/namespaces/two/pods/a", "{}"));
    start(&r, podcount);
    until_count(&r, "one", "1");
    until_count(&r, "two", "1");
    assert_true(fake_put(r.server, "/api/v1/namespaces/one/pods/b", "{}"));
    until_count(&r, "one", "2");
    assert_true(fake_remove(r.server, "/api/v1/namespaces/one/pods/a"));
    until_count(&r, "one", "1");
    /* what others do to it is undone */
    assert_true(
        fake_put(r.server, "/api/v1/namespaces/one/configmaps/pod-count", "{\"data\":{\"count\":\"99\"}}"));
    until_count(&r, "one", "1");
    assert_true(fake_remove(r.server, "/api/v1/namespaces/two/configmaps/pod-count"));
    until_count(&r, "two", "1");
    stop(&r);
    fake_apiserver_stop(r.server);
}

/* Fail the n-th write, n = 1, 2, 3, ... until none was there to fail: always the same end. */
static void test_every_write_may_fail(void **ctx)
{
    static const enum fake_fault faults[] = {FAKE_STATUS, FAKE_DROP_BEFORE, FAKE_DROP_AFTER, FAKE_RESET_BODY};

    (void)ctx;
    for (size_t f = 0; f < ARRAY_LEN(faults); f++) {
        int struck = 1;
        for (int n = 1; struck; n++) {
            struct run r = {.server = fake_apiserver_start()};
            struct fake_fault_plan plan = {
                .request = n, .path_part = "/namespaces/one/configmaps", .fault = faults[f], .status = 500};
            fake_plan_fault(r.server, &plan);
            assert_true(fake_put(r.server, "/api/v1/namespaces/one/pods/a", "{}"));
            start(&r, podcount);
            until_count(&r, "one", "1");
            assert_true(fake_put(r.server, "/api/v1/namespaces/one/pods/b", "{}"));
            until_count(&r, "one", "2");
            stop(&r);
            struck = fake_faults_done(r.server);
            assert_int_equal(fake_count(r.server, "/api/v1/configmaps"), 1);
            fake_apiserver_stop(r.server);
            assert_in_range(n, 1, 10);
        }
    }
}

#define COPY "/apis/examples.torchkeeper.dev/v1/namespaces/one/configcopies/c"
#define MAP "/api/v1/namespaces/two/configmaps/c"

/* A ConfigCopy's whole life: made, changed, its ConfigMap spoilt and removed by others, deleted. */
static void live(struct run *r)
{
    start(r, configcopy);
    assert_true(fake_put(r->server, COPY, "{\"spec\":{\"namespace\":\"two\",\"text\":\"a \\\"b\\\"\"}}"));
    until(r, MAP, "data", "text", "a \"b\"");
    until(r, COPY, "status", "text", "a \"b\"");
    assert_true(fake_put(r->server, COPY, "{\"spec\":{\"text\":\"c\"}}"));
    until(r, MAP, "data", "text", "c");
    until(r, COPY, "status", "text", "c");
    assert_true(fake_put(r->server, MAP, "{\"data\":{\"text\":\"spoilt\"}}"));
    until(r, MAP, "data", "text", "c");
    assert_true(fake_remove(r->server, MAP));
    until(r, MAP, "data", "text", "c");
    assert_true(fake_delete(r->server, COPY));
    until(r, MAP, "data", "text", NULL);
    until(r, COPY, "spec", "text", NULL);
    stop(r);
}

static struct fake_apiserver *server_with_copies(void)
{
    struct fake_apiserver *s = fake_apiserver_start();

    fake_add_kind(s, "/apis/examples.torchkeeper.dev/v1", "configcopies", "ConfigCopy");
    return s;
}

static void test_a_custom_resource(void **ctx)
{
    static const enum fake_fault faults[] = {FAKE_NOTHING, FAKE_STATUS, FAKE_DROP_AFTER};

    (void)ctx;
    for (size_t f = 0; f < ARRAY_LEN(faults); f++) {
        int struck = 1;
        for (int n = 1; struck && n < 20; n++) {
            struct run r = {.server = server_with_copies()};
            struct fake_fault_plan plan = {.request = n, .writes = true, .fault = faults[f], .status = 500};
            fake_plan_fault(r.server, &plan);
            live(&r);
            struck = faults[f] != FAKE_NOTHING && fake_faults_done(r.server);
            fake_apiserver_stop(r.server);
        }
        assert_false(struck);
    }
}

/* The finalizer waits for the ConfigMap: while that cannot be deleted the ConfigCopy stays. */
static void test_the_finalizer_holds(void **ctx)
{
    struct run r = {.server = server_with_copies()};

    (void)ctx;
    start(&r, configcopy);
    assert_true(fake_put(r.server, COPY, "{\"spec\":{\"namespace\":\"two\",\"text\":\"a\"}}"));
    until(&r, COPY, "status", "text", "a");
    fake_plan_fault(r.server,
                    &(struct fake_fault_plan){.method = "DELETE", .fault = FAKE_STATUS, .status = 403});
    assert_true(fake_delete(r.server, COPY));
    while (fake_faults_done(r.server) < 3)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    until(&r, COPY, "spec", "text", "a");
    fake_plan_fault(r.server, NULL);
    until(&r, COPY, "spec", "text", NULL);
    assert_int_equal(fake_count(r.server, "/api/v1/configmaps"), 0);
    stop(&r);
    fake_apiserver_stop(r.server);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_converges),
        cmocka_unit_test(test_every_write_may_fail),
        cmocka_unit_test(test_a_custom_resource),
        cmocka_unit_test(test_the_finalizer_holds),
    };

    if (argc != 3)
        return 2;
    podcount = argv[1];
    configcopy = argv[2];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
