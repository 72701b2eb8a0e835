/* test_podshapes.c - the ways in which a pod of a running gang may fail or hang, as kubelets, nodes and schedulers show them,
 * and what becomes of the job: which end, which attempt, what is counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "meddle.h"

#define POD_1 LAB_PODS "/j-node-1"
#define ENDED(members)                                                                                       \
    "\"containerStatuses\":[{\"name\":\"pytorch\",\"state\":{\"terminated\":{" members                       \
    ",\"finishedAt\":\"2026-11-21T00:00:30Z\"}}}]"

/* What the summary says. */
#define FAILS "Failed attempt=0 backoff=0 disruptions=0 failures=1 restarts=0"
#define COUNTED "MasterSucceeded, Succeeded attempt=1 backoff=1 disruptions=0 failures=1 restarts=1"
#define DISRUPTED "MasterSucceeded, Succeeded attempt=1 backoff=0 disruptions=1 failures=1 restarts=1"
#define REFUSED                                                                                              \
    "MasterSucceeded, Succeeded attempt=1 backoff=0 disruptions=0 failures=1 restarts=1" /* admissionCount */
#define WAITS " attempt=0 backoff=0 disruptions=0 failures=0 restarts=0"
#define ONE_GANG " j-node-0/0 j-node-1/0"
#define TWO_GANGS " j-node-0/0 j-node-0/1 j-node-1/0 j-node-1/1"

static int ends_well_later(int attempt, int index)
{
    (void)index;
    return attempt == 0 ? LAB_RUNS : 0;
}

/* Nobody confirms that the pod is gone. */
static int node_is_gone(int attempt, int index)
{
    (void)attempt;
    (void)index;
    return LAB_STUCK;
}

static const struct meddle_row ROWS[] = {
    {"exit-1",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\"," ENDED("\"exitCode\":1,\"reason\":\"Error\"") "}}"}},
     "PermanentExitCode, " FAILS,
     ONE_GANG,
     1,
     0,
     ends_well_later},
    {"exit-2",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\"," ENDED("\"exitCode\":2,\"reason\":\"Error\"") "}}"}},
     "PermanentExitCode, " FAILS,
     ONE_GANG,
     1,
     0,
     ends_well_later},
    {"exit-126",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\"," ENDED("\"exitCode\":126,\"reason\":\"Error\"") "}}"}},
     "PermanentExitCode, " FAILS,
     ONE_GANG,
     1,
     0,
     ends_well_later},
    {"exit-127",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\"," ENDED("\"exitCode\":127,\"reason\":\"Error\"") "}}"}},
     "PermanentExitCode, " FAILS,
     ONE_GANG,
     1,
     0,
     ends_well_later},
    {"exit-130-sigint",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\"," ENDED("\"exitCode\":130") "}}"}},
     COUNTED,
     TWO_GANGS,
     2,
     0,
     ends_well_later},
    {"exit-134-sigabrt",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\"," ENDED("\"exitCode\":134") "}}"}},
     "PermanentExitCode, " FAILS,
     ONE_GANG,
     1,
     0,
     ends_well_later},
    {"exit-137-kill",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\"," ENDED("\"exitCode\":137,\"reason\":\"Error\"") "}}"}},
     COUNTED,
     TWO_GANGS,
     2,
     0,
     ends_well_later},
    {"exit-137-by-signal",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\"," ENDED("\"exitCode\":137,\"signal\":9") "}}"}},
     COUNTED,
     TWO_GANGS,
     2,
     0,
     ends_well_later},
    {"oom-killed",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\"," ENDED("\"exitCode\":137,\"reason\":\"OOMKilled\"") "}}"}},
     COUNTED,
     TWO_GANGS,
     2,
     0,
     ends_well_later},
    {"exit-138-by-the-program",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\"," ENDED("\"exitCode\":138") "}}"}},
     COUNTED,
     TWO_GANGS,
     2,
     0,
     ends_well_later},
    {"exit-139-sigsegv",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\"," ENDED("\"exitCode\":139") "}}"}},
     "PermanentExitCode, " FAILS,
     ONE_GANG,
     1,
     0,
     ends_well_later},
    {"exit-140-peer-lost",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\"," ENDED("\"exitCode\":140") "}}"}},
     COUNTED,
     TWO_GANGS,
     2,
     0,
     ends_well_later},
    {"exit-143-sigterm",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\"," ENDED("\"exitCode\":143") "}}"}},
     COUNTED,
     TWO_GANGS,
     2,
     0,
     ends_well_later},
    {"exit-255",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\"," ENDED("\"exitCode\":255") "}}"}},
     "PermanentExitCode, " FAILS,
     ONE_GANG,
     1,
     0,
     ends_well_later},
    {"container-status-unknown",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\"," ENDED(
                  "\"exitCode\":137,\"reason\":\"ContainerStatusUnknown\",\"message\":\"The container could "
                  "not be located when the pod was terminated\"") "}}"}},
     DISRUPTED,
     TWO_GANGS,
     2,
     0,
     ends_well_later},
    {"exit-255-lost-by-the-runtime",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\"," ENDED("\"exitCode\":255,\"reason\":\"Unknown\"") "}}"}},
     DISRUPTED,
     TWO_GANGS,
     2,
     0,
     ends_well_later},
    {"start-error",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\"," ENDED(
                  "\"exitCode\":128,\"reason\":\"StartError\",\"message\":\"exec: no such file\"") "}}"}},
     "StartError, " FAILS,
     ONE_GANG,
     1,
     0,
     ends_well_later},
    {"exit-0-but-failed",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\"," ENDED("\"exitCode\":0") "}}"}},
     "-, Running" WAITS,
     ONE_GANG,
     0,
     0,
     ends_well_later},
    {"evicted-for-its-limits",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\",\"reason\":\"Evicted\",\"message\":\"Pod ephemeral local "
              "storage usage exceeds the total limit of containers 1Gi.\"}}"}},
     "Evicted, " FAILS,
     ONE_GANG,
     1,
     0,
     ends_well_later},
    {"evicted-by-the-node",
     {{POD_1,
       "{\"status\":{\"phase\":\"Failed\",\"reason\":\"Evicted\",\"message\":\"The node was low on resource: "
       "memory.\",\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":\"True\",\"reason\":"
       "\"TerminationByKubelet\"}]}}"}},
     DISRUPTED,
     TWO_GANGS,
     2,
     0,
     ends_well_later},
    {"preempted",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\",\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":"
              "\"True\",\"reason\":\"PreemptionByScheduler\"}]}}"}},
     DISRUPTED,
     TWO_GANGS,
     2,
     0,
     ends_well_later},
    {"taint-manager",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\",\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":"
              "\"True\",\"reason\":\"DeletionByTaintManager\"}]}}"}},
     DISRUPTED,
     TWO_GANGS,
     2,
     0,
     ends_well_later},
    {"drained",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\",\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":"
              "\"True\",\"reason\":\"EvictionByEvictionAPI\"}]}}"}},
     DISRUPTED,
     TWO_GANGS,
     2,
     0,
     ends_well_later},
    {"collected-with-its-node",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\",\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":"
              "\"True\",\"reason\":\"DeletionByPodGC\"}]}}"}},
     DISRUPTED,
     TWO_GANGS,
     2,
     0,
     ends_well_later},
    {"node-shutdown",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\",\"reason\":\"Terminated\",\"message\":\"Pod was terminated "
              "in response to imminent node shutdown.\"}}"}},
     REFUSED,
     TWO_GANGS,
     2,
     0,
     ends_well_later},
    {"deadline-of-the-pod",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\",\"reason\":\"DeadlineExceeded\",\"message\":\"Pod was "
              "active on the node longer than the specified deadline\"}}"}},
     "DeadlineExceeded, " FAILS,
     ONE_GANG,
     1,
     0,
     ends_well_later},
    {"admission-out-of-cpu",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\",\"reason\":\"OutOfcpu\",\"containerStatuses\":[]}}"}},
     REFUSED,
     TWO_GANGS,
     2,
     0,
     ends_well_later},
    {"admission-unexpected",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\",\"reason\":\"UnexpectedAdmissionError\",\"message\":"
              "\"Allocate failed\",\"containerStatuses\":[]}}"}},
     REFUSED,
     TWO_GANGS,
     2,
     0,
     ends_well_later},
    {"node-affinity",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\",\"reason\":\"NodeAffinity\",\"containerStatuses\":[]}}"}},
     REFUSED,
     TWO_GANGS,
     2,
     0,
     ends_well_later},
    {"no-container-status",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\",\"containerStatuses\":null}}"}},
     REFUSED,
     TWO_GANGS,
     2,
     0,
     ends_well_later},
    {"init-container-failed",
     {{POD_1, "{\"status\":{\"phase\":\"Failed\",\"containerStatuses\":[],\"initContainerStatuses\":[{"
              "\"name\":\"prepare\",\"state\":{\"terminated\":{\"exitCode\":3,\"reason\":\"Error\"}}}]}}"}},
     "InitContainerFailed prepare, " FAILS,
     ONE_GANG,
     1,
     0,
     ends_well_later},
    {"image-pull-backoff",
     {{POD_1,
       "{\"status\":{\"phase\":\"Pending\",\"containerStatuses\":[{\"name\":\"pytorch\",\"state\":{"
       "\"waiting\":{\"reason\":\"ImagePullBackOff\",\"message\":\"Back-off pulling image 'i'\"}}}]}}"}},
     "ImagePullFailed, Pending" WAITS,
     ONE_GANG,
     0,
     0,
     ends_well_later},
    {"config-error",
     {{POD_1,
       "{\"status\":{\"phase\":\"Pending\",\"containerStatuses\":[{\"name\":\"pytorch\",\"state\":{"
       "\"waiting\":{\"reason\":\"CreateContainerConfigError\",\"message\":\"secret s not found\"}}}]}}"}},
     "CreateContainerConfigError, Pending" WAITS,
     ONE_GANG,
     0,
     0,
     ends_well_later},
    {"image-of-a-sidecar",
     {{POD_1,
       "{\"spec\":{\"containers\":[{\"name\":\"pytorch\"},{\"name\":\"shipper\"}]},\"status\":{\"phase\":"
       "\"Pending\",\"containerStatuses\":[{\"name\":\"pytorch\",\"state\":{\"running\":{}}},{\"name\":"
       "\"shipper\",\"state\":{\"waiting\":{\"reason\":\"ErrImageNeverPull\"}}}]}}"}},
     "ImagePullFailed shipper, Pending" WAITS,
     ONE_GANG,
     0,
     0,
     ends_well_later},
    {"unknown-phase",
     {{POD_1, "{\"status\":{\"phase\":\"Unknown\",\"reason\":\"NodeLost\",\"message\":\"Node n0 which was "
              "running pod is unresponsive\"}}"}},
     "-, Unknown" WAITS,
     ONE_GANG,
     0,
     0,
     ends_well_later},
    {"restart-count",
     {{POD_1,
       "{\"status\":{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"pytorch\",\"restartCount\":3,"
       "\"state\":{\"running\":{}},\"lastState\":{\"terminated\":{\"exitCode\":137}}}]}}"}},
     "-, Running" WAITS,
     ONE_GANG,
     0,
     0,
     ends_well_later},
    {"deleted-and-never-gone",
     {{POD_1, MEDDLE_DELETE}},
     "PodStuckTerminating, Pending attempt=1 backoff=0 disruptions=1 failures=1 restarts=1",
     ONE_GANG,
     1,
     0,
     node_is_gone},
    {"force-deleted", {{POD_1, MEDDLE_REMOVE}}, DISRUPTED, TWO_GANGS, 1, 0, ends_well_later},
};

int main(void)
{
    return meddle_main("F10", ROWS, ARRAY_LEN(ROWS));
}
