/* podcount_test.c - an example of a test: podcount's reconcile against the fake API server, without network and on a fake clock.
 *
 * Links kubecontroller-test. Exits with 0 when the ConfigMap counts the pods, also after a write that failed.
 */
#define main podcount_main
#include "podcount.c"
#undef main

#include <tests/fakes/clock.h>
#include <tests/fakes/direct.h>

#define MAP "/api/v1/namespaces/ns/configmaps/pod-count"

/* Turns of the loop, 10 ms each, until the ConfigMap says so; false after a minute of the fake clock. */
static bool comes_to(struct fake_apiserver *server, struct fake_direct *direct, struct kube_loop *loop,
                     struct fake_clock *clock, const char *want)
{
    for (int i = 0; i < 6000; i++) {
        cJSON *map = fake_json(server, MAP);
        const char *have =
            cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetObjectItem(map, "data"), "count"));
        bool same = have && strcmp(have, want) == 0;
        struct err err;

        cJSON_Delete(map);
        if (same)
            return true;
        fake_direct_turn(direct);
        if (kube_loop_turn(loop, 0, &err) < 0)
            return false;
        fake_clock_pass(clock, 10);
    }
    return false;
}

int main(void)
{
    struct fake_clock clock = {.wall_ms = 1000000, .mono_ms = 1000000};
    struct fake_apiserver *server = fake_apiserver_alone();
    struct fake_tamper none = {0};
    struct err err;
    struct kube_loop *loop = kube_loop_new(fake_clock(&clock), &err);
    struct fake_direct *direct = fake_direct_new(server, loop, &none);
    struct kube_transport transport = fake_direct_transport(direct);
    struct app app = {0};
    struct kube_reconciler *r = podcount_new(loop, &transport, &app, NULL);

    fake_put(server, "/api/v1/namespaces/ns/pods/a", "{}");
    bool good = comes_to(server, direct, loop, &clock, "1");
    fake_plan_fault(
        server, &(struct fake_fault_plan){.request = 1, .writes = true, .fault = FAKE_STATUS, .status = 500});
    fake_put(server, "/api/v1/namespaces/ns/pods/b", "{}");
    good = good && comes_to(server, direct, loop, &clock, "2") && fake_faults_done(server) == 1;
    kube_reconciler_free(r);
    fake_direct_free(direct);
    kube_loop_free(loop);
    fake_apiserver_stop(server);
    return good ? 0 : 1;
}
