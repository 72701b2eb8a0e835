/* test_foreign.c - others change the job and its children while it runs. After ten minutes the operator has changed no object of
 * others, and has replaced or reported what was lost.
 */
#include "meddle.h"
#include "test.h"

#define POD_1 LAB_PODS "/j-node-1"
#define SERVICE LAB_SERVICES "/j-rdzv"
#define FOREIGN_OWNER                                                                                        \
    "'ownerReferences':[{'apiVersion':'v1','kind':'ConfigMap','name':'c','uid':'theirs','controller':true}]"
#define LABELS                                                                                               \
    "'labels':{'" LABEL_JOB "':'j','" LABEL_TYPE "':'node','" LABEL_INDEX "':'0','" LABEL_ATTEMPT "':'0'}"

#define NOTHING " attempt=0 backoff=0 disruptions=0 failures=0 restarts=0"
#define COUNTED " attempt=1 backoff=0 disruptions=1 failures=1 restarts=1"
/* The job continues with its pods; or it has lost one, and begins again. */
#define SAME(reason_and_phase) .want = reason_and_phase NOTHING, .pods = " j-node-0/0 j-node-1/0"
#define LOST(reason_and_phase)                                                                               \
    .want = reason_and_phase COUNTED, .pods = " j-node-0/0 j-node-0/1 j-node-1/0 j-node-1/1"

static const struct meddle_row ROWS[] = {
    {"owner-taken-away",
     {{POD_1, "{'metadata':{'ownerReferences':null}}"}},
     .want = "NameConflict, Pending" COUNTED,
     .pods = " j-node-0/0 j-node-0/1 j-node-1/0",
     .deletes = 1},
    {"adopted-by-another",
     {{POD_1, "{'metadata':{" FOREIGN_OWNER "}}"}},
     .want = "NameConflict, Pending" COUNTED,
     .pods = " j-node-0/0 j-node-0/1 j-node-1/0",
     .deletes = 1},
    {"job-label-changed", {{POD_1, "{'metadata':{'labels':{'" LABEL_JOB "':'other'}}}"}}, SAME("-, Running")},
    {"index-changed", {{POD_1, "{'metadata':{'labels':{'" LABEL_INDEX "':'0'}}}"}}, SAME("-, Running")},
    {"attempt-raised",
     {{POD_1, "{'metadata':{'labels':{'" LABEL_ATTEMPT "':'5'}}}"}},
     .want = "-, Running attempt=6 backoff=0 disruptions=1 failures=1 restarts=1",
     .pods = " j-node-0/0 j-node-0/6 j-node-1/0 j-node-1/6",
     .deletes = 2},
    {"all-pods-deleted", {{LAB_PODS "/j-node-0", MEDDLE_DELETE}, {POD_1, MEDDLE_DELETE}}, LOST("-, Running")},
    {"one-deleted-while-marked",
     {{POD_1, "{'metadata':{'finalizers':['a/b']}}"}, {POD_1, MEDDLE_DELETE}},
     LOST("-, Running"),
     .deletes = 1},
    {"service-taken-over",
     {{SERVICE, MEDDLE_REMOVE}, {SERVICE, "{'metadata':{" FOREIGN_OWNER "}}"}},
     SAME("NameConflict, Running")},
    {"service-given-away", {{SERVICE, "{'metadata':{" FOREIGN_OWNER "}}"}}, SAME("NameConflict, Running")},
    {"stranger-with-our-labels",
     {{LAB_PODS "/stranger", "{'metadata':{" LABELS "}}"}},
     .want = "-, Running" NOTHING,
     .pods = " j-node-0/0 j-node-1/0 stranger/0"},
    {"stranger-of-an-owner",
     {{LAB_PODS "/stranger", "{'metadata':{" LABELS "," FOREIGN_OWNER "}}"}},
     .want = "-, Running" NOTHING,
     .pods = " j-node-0/0 j-node-1/0 stranger/0"},
    {"failed-by-hand",
     {{LAB_JOB, "{'status':{'phase':'Failed'}}"}},
     SAME("-, Failed"),
     .deletes = 2,
     .leave_out = FAKE_RULES_NO_COUNTERS},
    {"status-of-another",
     {{LAB_JOB, "{'status':{'attempt':'x','phase':7,'tasks':'none','conditions':{}}}"}},
     SAME("-, Running"),
     .leave_out = FAKE_RULES_NO_COUNTERS},
    {"counts-lowered",
     {{POD_1, MEDDLE_REMOVE}, {LAB_JOB, "{'status':{'attempt':0,'disruptionCount':0}}"}},
     LOST("-, Running"),
     .deletes = 1,
     .leave_out = FAKE_RULES_NO_COUNTERS},
    {"replicas-by-another",
     {{LAB_JOB, "{'spec':{'replicaSpecs':[{'type':'node','replicas':3,'restartPolicy':'ExitCode','template':{"
                "'spec':{'containers':[{'name':'pytorch','image':'i'}]}}}]}}"}},
     .want = "-, Running attempt=1 backoff=0 disruptions=0 failures=0 restarts=0",
     .pods = " j-node-0/0 j-node-0/1 j-node-1/0 j-node-1/1 j-node-2/1",
     .deletes = 2},
    {"deleted-but-held",
     {{LAB_JOB, "{'metadata':{'finalizers':['a/b']}}"}, {LAB_JOB, MEDDLE_DELETE}, {POD_1, MEDDLE_REMOVE}},
     SAME("-, Running")},
    {"pod-removed", {{POD_1, MEDDLE_REMOVE}}, LOST("-, Running"), .deletes = 1},
    /* Then the rules do not know of which attempt it is. */
    {"labels-taken-away",
     {{POD_1, "{'metadata':{'labels':null}}"}},
     LOST("-, Running"),
     .deletes = 2,
     .leave_out = FAKE_RULES_NO_PODS},
    {"attempt-taken-away",
     {{POD_1, "{'metadata':{'labels':{'" LABEL_ATTEMPT "':null}}}"}},
     LOST("-, Running"),
     .deletes = 2},
    {"service-removed", {{SERVICE, MEDDLE_REMOVE}}, SAME("-, Running")},
    {"service-without-its-label",
     {{SERVICE, "{'metadata':{'labels':null}}"}},
     SAME("-, Running"),
     .deletes = 1},
    {"status-cleared",
     {{LAB_JOB, "{'status':null}"}},
     SAME("-, Running"),
     .leave_out = FAKE_RULES_NO_COUNTERS},
};

int main(void)
{
    return meddle_main("F11", ROWS, ARRAY_LEN(ROWS), lab_forever);
}
