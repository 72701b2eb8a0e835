/* test_failurerule.c - podFailurePolicy: which rule decides about which end of a pod, and what follows. */
#include "jsontext.h"
#include "operator/plan/plan.h"
#include "podbrief.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

#define MESSAGES_BYTES 4096
#define IN(action, values) "{'action':'" action "','onExitCodes':{'operator':'In','values':[" values "]}}"
#define NOT_IN(action, values)                                                                               \
    "{'action':'" action "','onExitCodes':{'operator':'NotIn','values':[" values "]}}"
#define OF(action, name, values)                                                                             \
    "{'action':'" action "','onExitCodes':{'containerName':'" name "','operator':'In','values':[" values "]" \
    "}"                                                                                                      \
    "}"
#define WHEN(action, pattern) "{'action':'" action "','onPodConditions':[" pattern "]}"
#define TARGET "{'type':'DisruptionTarget'}"
#define LONG_AGO "'finished':'2026-01-01T00:09:00Z'"
#define ENDED(code) "'phase':'Failed','exit':" code "," LONG_AGO
#define ALSO(members) ",'also':{'status':{" members "}}"
#define BESIDE(name, code) "{'name':'" name "','state':{'terminated':{'exitCode':" code "}}}"

#define UNCOUNTED                                                                                            \
    "\"backoffCount\":0,\"disruptionCount\":0,\"admissionCount\":0,\"resumeCount\":0,\"restarts\":1"

struct row {
    const char *name, *rules, *policy, *pod;
    const char *want; /* in what the plan writes */
    const char *never;
};

/* Counters that the status does not mention are 0, as in the job. */
static const struct row ROWS[] = {
    {"the table, without a rule", "", "ExitCode", ENDED("42"), "PermanentExitCode: ", "PodFailurePolicy"},
    {"no rule matches", IN("FailJob", "43"), "OnFailure", ENDED("42"), "\"backoffCount\":1",
     "\"Failed\",\"reason\""},
    {"FailJob before OnFailure", IN("FailJob", "42"), "OnFailure", ENDED("42"),
     "PodFailurePolicy: Container pytorch for pod ns/j-node-1 failed with exit code 42 matching FailJob rule "
     "at index 0",
     "Restarting"},
    {"Ignore before Never", IN("Ignore", "42"), "Never", ENDED("42"), "attempt 1 begins now; not counted",
     "\"backoffCount\":1"},
    {"Ignore changes no counter", IN("Ignore", "137"), "ExitCode", ENDED("137"), UNCOUNTED, "restart 1"},
    {"Count before the table", IN("Count", "42"), "ExitCode", ENDED("42"), "\"backoffCount\":1",
     "\nFailed: "},
    {"Count of a disruption", WHEN("Count", TARGET), "ExitCode",
     ENDED("1") ",'disruption':'EvictionByEvictionAPI'", "\"backoffCount\":1", "\"disruptionCount\":1"},
    {"the first one decides", IN("Ignore", "7,42") "," IN("FailJob", "42"), "ExitCode", ENDED("42"),
     "not counted", "PodFailurePolicy"},
    {"the second one decides", IN("Ignore", "7") "," IN("FailJob", "42"), "ExitCode", ENDED("42"),
     "FailJob rule at index 1", "not counted"},
    {"NotIn", NOT_IN("FailJob", "1,2"), "OnFailure", ENDED("42"), "exit code 42 matching", "Restarting"},
    {"NotIn, but it is", NOT_IN("FailJob", "1,42"), "OnFailure", ENDED("42"), "\"backoffCount\":1",
     "PodFailurePolicy"},
    {"another container", OF("FailJob", "mesh", "42"), "OnFailure", ENDED("42"), "\"backoffCount\":1",
     "PodFailurePolicy"},
    {"that container", OF("FailJob", "pytorch", "42"), "OnFailure", ENDED("42"), "Container pytorch for",
     "Restarting"},
    {"an init container", OF("FailJob", "prepare", "9"), "OnFailure",
     "'phase':'Failed','init':{'exit':9," LONG_AGO "}", "Container prepare for pod", "Restarting"},
    {"a container beside the training", OF("FailJob", "mesh", "3"), "OnFailure",
     "'phase':'Failed'" ALSO("'containerStatuses':[" BESIDE("mesh", "3") "," BESIDE("pytorch", "1") "]"),
     "Container mesh for pod", "Restarting"},
    {"containers before init containers", IN("FailJob", "3,9"), "OnFailure",
     "'phase':'Failed'" ALSO("'containerStatuses':[" BESIDE(
         "pytorch", "3") "],'initContainerStatuses':[" BESIDE("prepare", "9") "]"),
     "Container pytorch for pod", "Container prepare"},
    {"a condition", WHEN("FailJob", "{'type':'Broken'}," TARGET), "OnFailure",
     ENDED("1") ",'disruption':'PreemptionByScheduler'",
     "Pod ns/j-node-1 has condition DisruptionTarget matching FailJob rule at index 0", "Restarting"},
    {"a condition with another status", WHEN("FailJob", "{'type':'Broken','status':'False'}"), "OnFailure",
     ENDED("1") ALSO("'conditions':[{'type':'Broken','status':'True'}]"), "\"backoffCount\":1",
     "PodFailurePolicy"},
    {"a condition with that status", WHEN("FailJob", "{'type':'Broken','status':'Unknown'}"), "OnFailure",
     ENDED("1") ALSO("'conditions':[{'type':'Broken','status':'Unknown'}]"), "has condition Broken",
     "Restarting"},
    {"deleted, and the exit code is not known yet", IN("Ignore", "42") "," WHEN("FailJob", TARGET),
     "OnFailure", "'terminating':'2026-01-01T00:10:30Z','disruption':'EvictionByEvictionAPI'", "",
     "FailJob rule"},
    {"deleted, and then it ended", IN("Ignore", "42") "," WHEN("FailJob", TARGET), "OnFailure",
     ENDED("42") ",'terminating':'2026-01-01T00:10:30Z','disruption':'EvictionByEvictionAPI'", "not counted",
     "FailJob rule"},
    {"deleted, and only conditions decide", WHEN("Ignore", TARGET), "OnFailure",
     "'terminating':'2026-01-01T00:10:30Z','disruption':'EvictionByEvictionAPI'", UNCOUNTED, "restart 1"},
    {"a name that looks like two words", IN("FailJob", "42"), "OnFailure",
     "'phase':'Failed'" ALSO("'containerStatuses':[" BESIDE("a\\tb", "42") "," BESIDE("pytorch", "1") "]"),
     "\"backoffCount\":1", "PodFailurePolicy"},
    {"success has no rule", NOT_IN("FailJob", "1"), "OnFailure", "'phase':'Succeeded','exit':0", "",
     "PodFailurePolicy"},
    {"93 is permanent", "", "ExitCode", ENDED("93"), "\nFailed: DoNotRequeue: ", "Restarting"},
    {"93, and a rule", IN("Ignore", "93"), "ExitCode", ENDED("93"), "not counted", "DoNotRequeue: rank"},
};

/* Events as "REASON: message", and the status, of a job of two pods; one without a brief is gone. */
static void plan_of(const char *spec, const char *const *briefs, const char *status, char *out)
{
    char text[4096];
    struct err err;
    struct arena arena = {0};
    struct plan plan;
    struct pod *pods[2] = {NULL};
    size_t len = 0;
    struct plan_input in = {.now_ms = 1767226200000, .service = &(struct child){.name = "j-rdzv"}};

    snprintf(text, sizeof(text),
             "{'metadata':{'name':'j','namespace':'ns','uid':'u-1','resourceVersion':'7','generation':1},'"
             "spec':{%s},'status':%s}",
             spec, status);
    cleanup_trainjob struct trainjob *job = trainjob_decode(jsontext_parse(text), &err);
    assert_non_null(job);
    if (job->spec_error)
        fail_msg("%s", job->spec_error);
    for (int i = 0; i < 2; i++) {
        if (!briefs[i])
            continue;
        snprintf(text, sizeof(text), "{'name':'j-node-%d','index':%d,'node':'n0'%s%s}", i, i,
                 briefs[i][0] ? "," : "", briefs[i]);
        cleanup_json cJSON *brief = jsontext_parse(text);
        cleanup_json cJSON *pod = brief_pod(brief, "j", "u-1", job->spec.hash);
        pods[in.n_pods++] = pod_decode(pod, NULL, &err);
    }
    in.job = job;
    in.pods = (const struct pod *const *)pods;
    plan_trainjob(&in, &arena, &plan);
    out[0] = '\0';
    for (int i = 0; i < plan.n_actions; i++) {
        const struct action *act = &plan.actions[i];
        len += (size_t)snprintf(out + len, MESSAGES_BYTES - len, "%s: %s\n", act->reason ? act->reason : "",
                                act->kind == ACTION_EVENT ? act->message
                                : act->body               ? act->body
                                                          : "");
        assert_true(len < MESSAGES_BYTES);
    }
    for (int i = 0; i < in.n_pods; i++)
        free(pods[i]);
    arena_release(&arena);
}

static void expect(const char *name, const char *out, const char *want, const char *never)
{
    if (!strstr(out, want))
        fail_msg("%s: expected \"%s\" in:\n%s", name, want, out);
    if (strstr(out, never))
        fail_msg("%s: expected no \"%s\" in:\n%s", name, never, out);
}

#define TEMPLATE                                                                                             \
    "'template':{'spec':{'containers':[{'name':'pytorch'}],'initContainers':[{'name':'prepare'},{'name':'"   \
    "mesh'}]}}"

static void test_rules(void **state)
{
    char spec[2048], out[MESSAGES_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        const struct row *r = &ROWS[i];
        snprintf(spec, sizeof(spec),
                 "'runPolicy':{'podFailurePolicy':{'rules':[%s]}},'replicaSpecs':[{'type':'node','replicas':"
                 "2,'restartPolicy':'%s'," TEMPLATE "}]",
                 r->rules, r->policy);
        plan_of(spec, (const char *const[]){"", r->pod}, "{}", out);
        expect(r->name, out, r->want, r->never);
    }
}

/* Each of two failed pods has its own rule; whole attempts, and pods replaced one by one. */
static void test_several(void **state)
{
    static const struct {
        const char *name, *scope, *first, *second, *want, *never;
    } BOTH[] = {
        {"FailJob is stronger", "Job", ENDED("1"), ENDED("3"), "exit code 3 matching", "Restarting"},
        {"FailJob is stronger than a disruption", "Job", ENDED("3"),
         ENDED("9") ",'disruption':'EvictionByEvictionAPI'", "exit code 3 matching", "Restarting"},
        {"Count is stronger than Ignore", "Job", ENDED("1"), ENDED("2"), "\"backoffCount\":1", "not counted"},
        {"Ignore is stronger than the table", "Job", ENDED("1"), ENDED("137"), "not counted",
         "\"backoffCount\":1"},
        {"one by one", "Replica", ENDED("1"), ENDED("2"), "pod j-node-0 begins now; not counted",
         "attempt 1 begins"},
        {"one by one, counted", "Replica", ENDED("1"), ENDED("2"), "restart 1/3: pod j-node-1",
         "attempt 1 begins"},
        {"one of them ends the job", "Replica", ENDED("1"), ENDED("3"), "exit code 3 matching", "Restarting"},
        {"nor is the other one counted", "Replica", ENDED("2"), ENDED("3"), "exit code 3 matching",
         "\"backoffCount\":1"},
    };
    char spec[2048], out[MESSAGES_BYTES];
    static const char STATUS[] = "{'attempt':0,'tasks':[{'type':'node','replicas':[{'name':'j-node-0','uid':'"
                                 "uid-j-node-0-0'},{'name':'j-node-1','uid':'uid-j-node-1-0'}]}]}";

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(BOTH); i++) {
        snprintf(spec, sizeof(spec),
                 "'runPolicy':{'restartScope':'%s','podFailurePolicy':{'rules':[" IN("Ignore", "1") "," IN(
                     "Count", "2") "," IN("FailJob",
                                          "3") "]}},"
                                               "'replicaSpecs':[{'type':'node','replicas':2," TEMPLATE "}]",
                 BOTH[i].scope);
        plan_of(spec, (const char *const[]){BOTH[i].first, BOTH[i].second}, STATUS, out);
        expect(BOTH[i].name, out, BOTH[i].want, BOTH[i].never);
    }
}

/* The status has the exit code of a pod that is gone, and of its conditions nothing. */
static void test_gone(void **state)
{
    static const char SPEC[] = "'runPolicy':{'podFailurePolicy':{'rules':[" WHEN("FailJob", TARGET) "," IN(
        "FailJob", "42") "]}},"
                         "'replicaSpecs':[{'type':'node','replicas':2," TEMPLATE "}]";
    static const char STATUS[] =
        "{'attempt':0,'tasks':[{'type':'node','replicas':[{'name':'j-node-0','uid':'uid-j-node-0-0'},"
        "{'name':'j-node-1','uid':'u','containers':[{'name':'pytorch','state':'Terminated','exitCode':%d}]}]}"
        "]}";
    char status[512], out[MESSAGES_BYTES];

    (void)state;
    snprintf(status, sizeof(status), STATUS, 42);
    plan_of(SPEC, (const char *const[]){"", NULL}, status, out);
    expect("42", out, "exit code 42 matching FailJob rule at index 1", "Restarting");
    snprintf(status, sizeof(status), STATUS, 43);
    plan_of(SPEC, (const char *const[]){"", NULL}, status, out);
    expect("43", out, "\"backoffCount\":1", "PodFailurePolicy");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules), cmocka_unit_test(test_several),
                                       cmocka_unit_test(test_gone)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
