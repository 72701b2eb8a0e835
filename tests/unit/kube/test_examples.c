/* test_examples.c - the example controller as a program: it converges, also when requests fail, and stops. */
#include "common/json.h"
#include "test.h"
#include "tests/fakes/apiserver.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *podcount;

struct run {
    struct fake_apiserver *server;
    pid_t pid;
};

static void start(struct run *r)
{
    r->pid = fork();
    if (r->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it does not outlive a test that fails */
        execl(podcount, podcount, "", fake_apiserver_url(r->server), (char *)NULL);
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
}

/* Until the ConfigMap has that value; after a minute the test fails. */
static void until_count(struct run *r, const char *ns, const char *count)
{
    char path[128];

    snprintf(path, sizeof(path), "/api/v1/namespaces/%s/configmaps/pod-count", ns);
    for (int i = 0; i < 6000; i++) {
        cleanup_json cJSON *map = fake_json(r->server, path);
        const char *got = json_str(json_child(map, "data"), "count");
        if (got && strcmp(got, count) == 0)
            return;
        assert_int_equal(waitpid(r->pid, NULL, WNOHANG), 0); /* it still runs */
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    fail_msg("%s: never %s", path, count);
}

static void test_converges(void **ctx)
{
    struct run r = {.server = fake_apiserver_start()};

    (void)ctx;
    assert_true(fake_put(r.server, "/api/v1/namespaces/one/pods/a", "{}"));
    assert_true(fake_put(r.server, "/api/v1/namespaces/two/pods/a", "{}"));
    start(&r);
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_converges),
    };

    if (argc != 2)
        return 2;
    podcount = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
