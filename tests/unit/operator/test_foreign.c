/* test_foreign.c - what others do to the job and its children while it runs, and what stands after ten minutes of it:
 * nobody else's object is touched, and what is lost is replaced or named.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "meddle.h"

#define POD_1 LAB_PODS "/j-node-1"
#define SERVICE LAB_SERVICES "/j-rdzv"
#define FOREIGN_OWNER                                                                                        \
    "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"c\",\"uid\":\"theirs\","  \
    "\"controller\":true}]"
#define LABELS                                                                                               \
    "\"labels\":{\"" LABEL_JOB "\":\"j\",\"" LABEL_TYPE "\":\"node\",\"" LABEL_INDEX                         \
    "\":\"0\",\"" LABEL_ATTEMPT "\":\"0\"}"
static const struct meddle_row ROWS[] = {
    {"owner-taken-away",
     {{POD_1, "{\"metadata\":{\"ownerReferences\":null}}"}},
     "NameConflict, Pending attempt=1 backoff=0 disruptions=1 failures=1 restarts=1",
     " j-node-0/0 j-node-0/1 j-node-1/0",
     1,
     0,
     NULL},
    {"adopted-by-another",
     {{POD_1, "{\"metadata\":{" FOREIGN_OWNER "}}"}},
     "NameConflict, Pending attempt=1 backoff=0 disruptions=1 failures=1 restarts=1",
     " j-node-0/0 j-node-0/1 j-node-1/0",
     1,
     0,
     NULL},
    {"job-label-changed",
     {{POD_1, "{\"metadata\":{\"labels\":{\"" LABEL_JOB "\":\"other\"}}}"}},
     "-, Running attempt=0 backoff=0 disruptions=0 failures=0 restarts=0",
     " j-node-0/0 j-node-1/0",
     0,
     0,
     NULL},
    {"index-changed",
     {{POD_1, "{\"metadata\":{\"labels\":{\"" LABEL_INDEX "\":\"0\"}}}"}},
     "-, Running attempt=0 backoff=0 disruptions=0 failures=0 restarts=0",
     " j-node-0/0 j-node-1/0",
     0,
     0,
     NULL},
    {"attempt-raised",
     {{POD_1, "{\"metadata\":{\"labels\":{\"" LABEL_ATTEMPT "\":\"5\"}}}"}},
     "-, Running attempt=6 backoff=0 disruptions=1 failures=1 restarts=1",
     " j-node-0/0 j-node-0/6 j-node-1/0 j-node-1/6",
     2,
     0,
     NULL},
    {"all-pods-deleted",
     {{LAB_PODS "/j-node-0", MEDDLE_DELETE}, {POD_1, MEDDLE_DELETE}},
     "-, Running attempt=1 backoff=0 disruptions=1 failures=1 restarts=1",
     " j-node-0/0 j-node-0/1 j-node-1/0 j-node-1/1",
     0,
     0,
     NULL},
    {"one-deleted-while-marked",
     {{POD_1, "{\"metadata\":{\"finalizers\":[\"a/b\"]}}"}, {POD_1, MEDDLE_DELETE}},
     "-, Running attempt=1 backoff=0 disruptions=1 failures=1 restarts=1",
     " j-node-0/0 j-node-0/1 j-node-1/0 j-node-1/1",
     1,
     0,
     NULL},
    {"service-taken-over",
     {{SERVICE, MEDDLE_REMOVE}, {SERVICE, "{\"metadata\":{" FOREIGN_OWNER "}}"}},
     "NameConflict, Running attempt=0 backoff=0 disruptions=0 failures=0 restarts=0",
     " j-node-0/0 j-node-1/0",
     0,
     0,
     NULL},
    {"service-given-away",
     {{SERVICE, "{\"metadata\":{" FOREIGN_OWNER "}}"}},
     "NameConflict, Running attempt=0 backoff=0 disruptions=0 failures=0 restarts=0",
     " j-node-0/0 j-node-1/0",
     0,
     0,
     NULL},
    {"stranger-with-our-labels",
     {{LAB_PODS "/stranger", "{\"metadata\":{" LABELS "}}"}},
     "-, Running attempt=0 backoff=0 disruptions=0 failures=0 restarts=0",
     " j-node-0/0 j-node-1/0 stranger/0",
     0,
     0,
     NULL},
    {"stranger-of-an-owner",
     {{LAB_PODS "/stranger", "{\"metadata\":{" LABELS "," FOREIGN_OWNER "}}"}},
     "-, Running attempt=0 backoff=0 disruptions=0 failures=0 restarts=0",
     " j-node-0/0 j-node-1/0 stranger/0",
     0,
     0,
     NULL},
    {"failed-by-hand",
     {{LAB_JOB, "{\"status\":{\"phase\":\"Failed\"}}"}},
     "-, Failed attempt=0 backoff=0 disruptions=0 failures=0 restarts=0",
     " j-node-0/0 j-node-1/0",
     2,
     FAKE_RULES_NO_COUNTERS,
     NULL},
    {"status-of-another",
     {{LAB_JOB, "{\"status\":{\"attempt\":\"x\",\"phase\":7,\"tasks\":\"none\",\"conditions\":{}}}"}},
     "-, Running attempt=0 backoff=0 disruptions=0 failures=0 restarts=0",
     " j-node-0/0 j-node-1/0",
     0,
     FAKE_RULES_NO_COUNTERS,
     NULL},
    {"counts-lowered",
     {{POD_1, MEDDLE_REMOVE}, {LAB_JOB, "{\"status\":{\"attempt\":0,\"disruptionCount\":0}}"}},
     "-, Running attempt=1 backoff=0 disruptions=1 failures=1 restarts=1",
     " j-node-0/0 j-node-0/1 j-node-1/0 j-node-1/1",
     1,
     FAKE_RULES_NO_COUNTERS,
     NULL},
    {"replicas-by-another",
     {{LAB_JOB,
       "{\"spec\":{\"replicaSpecs\":[{\"type\":\"node\",\"replicas\":3,\"restartPolicy\":\"ExitCode\","
       "\"template\":{\"spec\":{\"containers\":[{\"name\":\"pytorch\",\"image\":\"i\"}]}}}]}}"}},
     "-, Running attempt=1 backoff=0 disruptions=0 failures=0 restarts=0",
     " j-node-0/0 j-node-0/1 j-node-1/0 j-node-1/1 j-node-2/1",
     2,
     0,
     NULL},
    {"deleted-but-held",
     {{LAB_JOB, "{\"metadata\":{\"finalizers\":[\"a/b\"]}}"},
      {LAB_JOB, MEDDLE_DELETE},
      {POD_1, MEDDLE_REMOVE}},
     "-, Running attempt=0 backoff=0 disruptions=0 failures=0 restarts=0",
     " j-node-0/0 j-node-1/0",
     0,
     0,
     NULL},
};

int main(void)
{
    return meddle_main("F11", ROWS, ARRAY_LEN(ROWS));
}
