/* test_podshapes.c - the ways in which a pod of a running gang may fail or hang, as kubelets, nodes and schedulers show them,
 * and what becomes of the job: which end, which attempt, what is counted.
 */
#include "meddle.h"
#include "test.h"

#define POD_1 LAB_PODS "/j-node-1"
#define FAILED(more) "{'status':{'phase':'Failed'" more "}}"
#define ENDED(members)                                                                                       \
    "'containerStatuses':[{'name':'pytorch','state':{'terminated':{" members                                 \
    ",'finishedAt':'2026-11-21T00:00:30Z'}}}]"
#define FAILED_POD(more)                                                                                     \
    {                                                                                                        \
        {                                                                                                    \
            POD_1, FAILED(more)                                                                              \
        }                                                                                                    \
    }
#define ENDS(members) FAILED_POD("," ENDED(members))
#define TARGET(reason) ",'conditions':[{'type':'DisruptionTarget','status':'True','reason':'" reason "'}]"

#define ONE_GANG " j-node-0/0 j-node-1/0"
#define TWO_GANGS " j-node-0/0 j-node-0/1 j-node-1/0 j-node-1/1"
#define AGAIN(counts) "MasterSucceeded, Succeeded attempt=1 " counts " failures=1 restarts=1"
#define DISRUPTED_WANT AGAIN("backoff=0 disruptions=1")

/* What becomes of the job. */
#define FAILS(reason)                                                                                        \
    .want = reason ", Failed attempt=0 backoff=0 disruptions=0 failures=1 restarts=0", .pods = ONE_GANG,     \
    .deletes = 1
#define WAITS(reason_and_phase)                                                                              \
    .want = reason_and_phase " attempt=0 backoff=0 disruptions=0 failures=0 restarts=0", .pods = ONE_GANG
#define COUNTED .want = AGAIN("backoff=1 disruptions=0"), .pods = TWO_GANGS, .deletes = 2
#define DISRUPTED .want = DISRUPTED_WANT, .pods = TWO_GANGS, .deletes = 2
#define REFUSED .want = AGAIN("backoff=0 disruptions=0"), .pods = TWO_GANGS, .deletes = 2 /* admissionCount */

static const struct meddle_row ROWS[] = {
    {"exit-1", ENDS("'exitCode':1,'reason':'Error'"), FAILS("PermanentExitCode")},
    {"exit-2", ENDS("'exitCode':2,'reason':'Error'"), FAILS("PermanentExitCode")},
    {"exit-126", ENDS("'exitCode':126,'reason':'Error'"), FAILS("PermanentExitCode")},
    {"exit-127", ENDS("'exitCode':127,'reason':'Error'"), FAILS("PermanentExitCode")},
    {"exit-130-sigint", ENDS("'exitCode':130"), COUNTED},
    {"exit-134-sigabrt", ENDS("'exitCode':134"), FAILS("PermanentExitCode")},
    {"exit-137-kill", ENDS("'exitCode':137,'reason':'Error'"), COUNTED},
    {"exit-137-by-signal", ENDS("'exitCode':137,'signal':9"), COUNTED},
    {"oom-killed", ENDS("'exitCode':137,'reason':'OOMKilled'"), COUNTED},
    {"exit-138-by-the-program", ENDS("'exitCode':138"), COUNTED},
    {"exit-139-sigsegv", ENDS("'exitCode':139"), FAILS("PermanentExitCode")},
    {"exit-140-peer-lost", ENDS("'exitCode':140"), COUNTED},
    {"exit-143-sigterm", ENDS("'exitCode':143"), COUNTED},
    {"exit-255", ENDS("'exitCode':255"), FAILS("PermanentExitCode")},
    {"container-status-unknown",
     ENDS("'exitCode':137,'reason':'ContainerStatusUnknown','message':'The container could not be located "
          "when the pod was terminated'"),
     DISRUPTED},
    {"exit-255-lost-by-the-runtime", ENDS("'exitCode':255,'reason':'Unknown'"), DISRUPTED},
    {"start-error", ENDS("'exitCode':128,'reason':'StartError','message':'exec: no such file'"),
     FAILS("StartError")},
    {"exit-0-but-failed", ENDS("'exitCode':0"), WAITS("-, Running")},
    {"evicted-for-its-limits",
     FAILED_POD(",'reason':'Evicted','message':'Pod ephemeral local storage usage exceeds the total limit of "
                "containers 1Gi.'"),
     FAILS("Evicted")},
    {"evicted-by-the-node",
     FAILED_POD(",'reason':'Evicted','message':'The node was low on resource: memory.'" TARGET(
         "TerminationByKubelet")),
     DISRUPTED},
    {"preempted", FAILED_POD(TARGET("PreemptionByScheduler")), DISRUPTED},
    {"taint-manager", FAILED_POD(TARGET("DeletionByTaintManager")), DISRUPTED},
    {"drained", FAILED_POD(TARGET("EvictionByEvictionAPI")), DISRUPTED},
    {"collected-with-its-node", FAILED_POD(TARGET("DeletionByPodGC")), DISRUPTED},
    {"node-shutdown",
     FAILED_POD(
         ",'reason':'Terminated','message':'Pod was terminated in response to imminent node shutdown.'"),
     REFUSED},
    {"deadline-of-the-pod",
     FAILED_POD(",'reason':'DeadlineExceeded','message':'Pod was active on the node longer than the "
                "specified deadline'"),
     FAILS("DeadlineExceeded")},
    {"admission-out-of-cpu", FAILED_POD(",'reason':'OutOfcpu','containerStatuses':[]"), REFUSED},
    {"admission-unexpected",
     FAILED_POD(",'reason':'UnexpectedAdmissionError','message':'Allocate failed','containerStatuses':[]"),
     REFUSED},
    {"node-affinity", FAILED_POD(",'reason':'NodeAffinity','containerStatuses':[]"), REFUSED},
    {"no-container-status", FAILED_POD(",'containerStatuses':null"), REFUSED},
    {"init-container-failed",
     FAILED_POD(",'containerStatuses':[],'initContainerStatuses':[{'name':'prepare','state':{'terminated':{'"
                "exitCode':3,'reason':'Error'}}}]"),
     FAILS("InitContainerFailed prepare")},
    {"image-pull-backoff",
     {{POD_1, "{'status':{'phase':'Pending','containerStatuses':[{'name':'pytorch','state':{'waiting':{'"
              "reason':'ImagePullBackOff','message':'Back-off pulling image i'}}}]}}"}},
     WAITS("ImagePullFailed, Pending")},
    {"config-error",
     {{POD_1, "{'status':{'phase':'Pending','containerStatuses':[{'name':'pytorch','state':{'waiting':{'"
              "reason':'CreateContainerConfigError','message':'secret s not found'}}}]}}"}},
     WAITS("CreateContainerConfigError, Pending")},
    {"image-of-a-sidecar",
     {{POD_1, "{'spec':{'containers':[{'name':'pytorch'},{'name':'shipper'}]},'status':{'phase':'Pending','"
              "containerStatuses':[{'name':'pytorch','state':{'running':{}}},{'name':'shipper','state':{'"
              "waiting':{'reason':'ErrImageNeverPull'}}}]}}"}},
     WAITS("ImagePullFailed shipper, Pending")},
    {"unknown-phase",
     {{POD_1, "{'status':{'phase':'Unknown','reason':'NodeLost','message':'Node n0 which was running pod is "
              "unresponsive'}}"}},
     WAITS("-, Unknown")},
    {"restart-count",
     {{POD_1, "{'status':{'phase':'Running','containerStatuses':[{'name':'pytorch','restartCount':3,'state':{"
              "'running':{}},'lastState':{'terminated':{'exitCode':137}}}]}}"}},
     WAITS("-, Running")},
    {"deleted-and-never-gone",
     {{POD_1, MEDDLE_DELETE}},
     .want = "PodStuckTerminating, Pending attempt=1 backoff=0 disruptions=1 failures=1 restarts=1",
     .pods = ONE_GANG,
     .deletes = 1,
     .script = lab_stuck},
    {"force-deleted", {{POD_1, MEDDLE_REMOVE}}, .want = DISRUPTED_WANT, .pods = TWO_GANGS, .deletes = 1},
};

int main(void)
{
    return meddle_main("F10", ROWS, ARRAY_LEN(ROWS), lab_well_later);
}
