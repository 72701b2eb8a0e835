/* test_avoid.c - which failures make a job avoid a node, which pods avoid it, and when that ends. */
#include "jsontext.h"
#include "operator/api/pod.h"
#include "plancase.h"
#include "test.h"
#include "yamldoc.h"

#include <stdio.h>
#include <string.h>

static struct plancases shared;

/* The case below with this merged into it, planned. */
static struct plancase run(const char *text, const char *patch)
{
    struct plancase c;
    struct err err;
    cJSON *doc = jsontext_parse(text);
    cleanup_json cJSON *more = jsontext_parse(patch);

    yamldoc_merge(doc, more);
    if (plancase_run(&shared, doc, &c, &err) < 0)
        fail_msg("%s: %s", patch, err.msg);
    return c;
}

/* "n0 n1" that the written status avoids, with ! behind those that it had to give up; "-": it has no list; "=": the list is not changed. */
static const char *avoided(const struct plancase *c, char ret[static 128])
{
    const cJSON *action, *n, *list = NULL;
    size_t len = 0;

    cJSON_ArrayForEach(action, json_child(c->plan, "actions"))
    {
        if (json_child(action, "status"))
            list = cJSON_GetObjectItem(json_find(action, (const char *[]){"status", "status", NULL}),
                                       "avoidedNodes");
    }
    if (!list)
        return "=";
    ret[0] = '\0';
    cJSON_ArrayForEach(n, list) len +=
        (size_t)snprintf(ret + len, 128 - len, "%s%s%s", len ? " " : "", json_str(n, "node"),
                         json_child(n, "dropped") ? "!" : "");
    return cJSON_IsNull(list) ? "-" : ret;
}

static int64_t number(const cJSON *o, const char *key)
{
    return json_i64(o, key, -1);
}

static const cJSON *written(const struct plancase *c)
{
    return json_find(cJSON_GetArrayItem(json_child(c->plan, "actions"), 0),
                     (const char *[]){"status", "status", NULL});
}

/* ---- who is accused */

/* Attempt 5 of two pods: that on n0 runs, that on n1 ends. Merged into the latter. */
#define ENDS(members) "{'pods':[{" POD_0 "},{" POD_1 "," members "}]}"
#define POD_0 "'name':'j-node-0','index':0,'attempt':5,'node':'n0'"
#define POD_0_N1 "'name':'j-node-0','index':0,'attempt':5,'node':'n1'"
#define POD_1 "'name':'j-node-1','index':1,'attempt':5,'node':'n1'"
#define FAILED(node, reason, more)                                                                           \
    "{'pod':'j-node-1','node':'" node "','reason':'" reason "','attempt':3," more "}"
#define AT "'time':'00:05:00'"
#define ONCE FAILED("n1", "UnexpectedAdmissionError", AT)
#define STATUS(failures, more)                                                                               \
    "'base':['two','two-running'],'status':{'counts':{'attempt':5},'failures':[" failures                    \
    "],'tasks':[{'node':[{'j-node-0':'Running','uid':'uid-j-node-0-5'},{'j-node-1':'Running','uid':"         \
    "'uid-j-node-1-5'}]}]" more "},'spec':{'runPolicy':{'retryableExitCodes':[1,7,139]}}"
#define SINCE(node, time, more) "{'node':'" node "','since':'" time "'" more "}"
#define FULL                                                                                                 \
    SINCE("n1", "00:08:00", "")                                                                              \
    "," SINCE("a", "00:08:00", "") "," SINCE("b", "00:08:00", "") "," SINCE("c", "00:08:00", "") "," SINCE(  \
        "d", "00:08:00", "") "," SINCE("e", "00:08:00", "") "," SINCE("f", "00:08:00",                       \
                                                                      "") "," SINCE("g", "00:08:00", "")
#define REFUSED "'phase':'Failed','podReason':'UnexpectedAdmissionError'"
#define KILLED "'exit':137,'reason':'Error'"

static void test_which_failures_accuse(void **state)
{
    static const struct {
        const char *failures, *ends, *want;
    } ROWS[] = {
        /* the node says so itself */
        {ONCE, ENDS(REFUSED), "n1"},
        {ONCE, ENDS("'phase':'Failed','podReason':'OutOfnvidia.com/gpu'"), "n1"},
        {ONCE, ENDS("'phase':'Failed','podReason':'TopologyAffinityError'"), "n1"},
        {ONCE, ENDS("'phase':'Failed','podReason':'NodeShutdown'"), "n1"},
        {ONCE, ENDS("'phase':'Failed'"), "n1"},
        {ONCE, ENDS("'exit':137,'reason':'ContainerStatusUnknown'"), "n1"},
        {ONCE, ENDS("'exit':255,'reason':'Unknown'"), "n1"},
        {ONCE, ENDS("'terminating':'00:10:00','disruption':'DeletionByTaintManager'"), "n1"},
        {ONCE, ENDS("'terminating':'00:10:00','disruption':'DeletionByPodGC'"), "n1"},
        {ONCE, ENDS("'exit':137,'disruption':'TerminationByKubelet'"), "n1"},
        {ONCE, ENDS(KILLED), "n1"},
        /* someone or something else is the cause */
        {ONCE, ENDS("'exit':137,'reason':'OOMKilled'"), "="},
        {ONCE, ENDS("'exit':143,'reason':'Error'"), "="},
        {ONCE, ENDS("'exit':130,'reason':'Error'"), "="},
        {ONCE, ENDS("'exit':140,'reason':'Error'"), "="},
        {ONCE, ENDS("'terminating':'00:10:00'"), "="},
        {ONCE, ENDS("'terminating':'00:10:00','disruption':'EvictionByEvictionAPI'"), "="},
        {ONCE, ENDS("'terminating':'00:10:00','disruption':'PreemptionByScheduler'"), "="},
        {ONCE, ENDS("'phase':'Failed','podReason':'Evicted'"), "="},
        {ONCE, "{'pods':[{" POD_0 "}]}", "="}, /* deleted: nothing shows where it was */
        /* a code that the program chose: only one of several nodes has it */
        {ONCE, "{'pods':[{" POD_0 ",'exit':140},{" POD_1 ",'exit':1}]}", "n1"},
        {ONCE, "{'pods':[{" POD_0 ",'exit':1},{" POD_1 ",'exit':1}]}", "="},
        {ONCE, "{'pods':[{" POD_0 ",'exit':7},{" POD_1 ",'exit':139}]}", "="}, /* n0's comes first */
        {FAILED("n0", "OutOfcpu", AT), "{'pods':[{" POD_0 ",'exit':7},{" POD_1 ",'exit':139}]}", "n0"},
        {ONCE, "{'pods':[{" POD_0_N1 ",'exit':140},{" POD_1 ",'exit':1}]}", "="},
        {ONCE, "{'pods':[{" POD_0 "," KILLED "},{" POD_1 "," KILLED "}]}", "="},
        {ONCE, "{'pods':[{" POD_0 ",'phase':'Failed','podReason':'OutOfcpu'},{" POD_1 "," REFUSED "}]}", "="},
        {ONCE, "{'pods':[{" POD_0_N1 "},{" POD_1 "," KILLED "}]}", "="},
        /* what came before */
        {"", ENDS(REFUSED), "="},
        {"", ENDS(REFUSED ",'created':'2026-01-01T01:00:00Z'"), "="}, /* by a clock that is ahead */
        {FAILED("n0", "Killed", "'exitCode':137," AT) "," ONCE, ENDS(REFUSED), "="},
        {ONCE "," FAILED("n0", "Killed", "'exitCode':137," AT), ENDS(REFUSED), "="},
        {ONCE "," FAILED("n0", "OOMKilled", "'exitCode':137," AT), ENDS(REFUSED), "n1"},
        {ONCE "," FAILED("n0", "PeerLost", "'exitCode':140," AT), ENDS(REFUSED), "n1"},
        {ONCE "," FAILED("n0", "PodDeleted", AT), ENDS(REFUSED), "n1"},
        {ONCE "," FAILED("n0", "StartDeadlineExceeded", AT), ENDS(REFUSED), "n1"},
        {FAILED("n1", "PermanentExitCode", "'exitCode':1," AT), ENDS(REFUSED), "="},
        {FAILED("n1", "Evicted", AT), ENDS(REFUSED), "="},
        {FAILED("n1", "StartDeadlineExceeded", AT), ENDS(REFUSED), "="},
        {FAILED("n1", "OutOfcpu", "'time':'2025-12-31T00:10:00Z'"), ENDS(REFUSED), "="},
        {FAILED("n0", "OutOfcpu", "'time':'2025-12-31T00:10:00Z'") "," ONCE, ENDS(REFUSED), "n1"},
        {FAILED("n1", "OutOfcpu", "'time':'2025-12-31T00:10:01Z'"), ENDS(REFUSED), "n1"},
        /* with whom */
        {ONCE, "{'spec':{'runPolicy':{'avoidNodes':false}},'pods':[{" POD_0 "},{" POD_1 "," REFUSED "}]}",
         "="},
        {ONCE, "{'spec':{'runPolicy':{'avoidNodes':true}},'pods':[{" POD_0 "},{" POD_1 "," REFUSED "}]}",
         "n1"},
        {ONCE,
         "{'spec':{'replicaSpecs':[{'type':'node','replicas':2,'template':{'spec':{'nodeName':'n1',"
         "'containers':[{'name':'pytorch','image':'i'}]}}}]},'pods':[{" POD_0 "},{" POD_1 "," REFUSED "}]}",
         "="},
    };
    char names[128], text[2048];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        snprintf(text, sizeof(text), "{" STATUS("%s", "") "}", ROWS[i].failures);
        struct plancase c = run(text, ROWS[i].ends);
        if (strcmp(avoided(&c, names), ROWS[i].want) != 0)
            fail_msg("[%s] %s: avoids %s, not %s", ROWS[i].failures, ROWS[i].ends, avoided(&c, names),
                     ROWS[i].want);
        plancase_free(&c);
    }
}

/* A job of one pod: only what the node itself reports accuses it. */
static void test_one_pod(void **state)
{
    static const char *const ENDS_OF_ONE[][2] = {
        {"'exit':7", "="}, {KILLED, "="}, {REFUSED, "n1"}, {"'exit':255,'reason':'Unknown'", "n1"}};
    char names[128], patch[256];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ENDS_OF_ONE); i++) {
        snprintf(patch, sizeof(patch), "{'pods':[{'name':'j-node-0','index':0,'attempt':5,'node':'n1',%s}]}",
                 ENDS_OF_ONE[i][0]);
        struct plancase c =
            run("{'base':['one','one-running'],'spec':{'runPolicy':{'retryableExitCodes':[7]}},"
                "'status':{'counts':{'attempt':5},'failures':[" ONCE "]}}",
                patch);
        assert_string_equal(avoided(&c, names), ENDS_OF_ONE[i][1]);
        plancase_free(&c);
    }
}

/* Two pods that end with their node are one failure, however they are replaced. */
static void test_replaced_pods(void **state)
{
    static const char LOST[] =
        "{" STATUS("", "") ",'pods':[{" POD_0_N1 "," REFUSED ",'created':'2026-01-01T00:06:00Z'},{" POD_1
                           "," REFUSED ",'created':'2026-01-01T00:06:00Z'}]}";
    char names[128];
    struct plancase c = run(LOST, "{'spec':{'runPolicy':{'restartScope':'Replica'}}}");

    (void)state;
    assert_int_equal(number(written(&c), "attempt"), -1); /* each was replaced */
    assert_string_equal(avoided(&c, names), "=");
    plancase_free(&c);
    /* In the same attempt, before these pods were made: twice. */
    c = run(LOST, "{'spec':{'runPolicy':{'restartScope':'Replica'}},'status':{'failures':[{'pod':'j-node-0','"
                  "node':'n1',"
                  "'reason':'OutOfcpu','attempt':5,'time':'00:05:00'}]}}");
    assert_string_equal(avoided(&c, names), "n1");
    plancase_free(&c);
    /* Two nodes at once, and a list that somebody filled: the newest one stays. */
    c = run("{" STATUS(ONCE "," FAILED("n0", "OutOfcpu", AT), ",'avoidedNodes':[" FULL "]") "}",
            "{'spec':{'runPolicy':{'restartScope':'Replica'}},'pods':[{" POD_0
            ",'phase':'Failed','podReason':'OutOfcpu'},{" POD_1 "," REFUSED "}]}");
    assert_string_equal(avoided(&c, names), "n1");
    plancase_free(&c);
}

/* At most a quarter of the nodes that the job's pods are on, and one in any case: the newest. */
static void test_how_many(void **state)
{
    static const int NODES[][2] = {{2, 1}, {7, 1}, {8, 2}, {11, 2}, {12, 3}, {16, 3}};
    char names[128], text[4096];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(NODES); i++) {
        int len = snprintf(
            text, sizeof(text),
            "{'base':['two','two-running'],'spec':{'replicaSpecs':[{'type':'node','replicas':%d,'template':"
            "{'spec':{'containers':[{'name':'pytorch','image':'i'}]}}}]},'status':{'counts':{'attempt':5},"
            "'failures':[" ONCE "],'avoidedNodes':[{'node':'a','since':'00:08:00'},{'node':'b','since':"
            "'00:09:00'}],'tasks':[]},'pods':[",
            NODES[i][0]);
        for (int k = 0; k < NODES[i][0]; k++)
            len += snprintf(text + len, sizeof(text) - (size_t)len,
                            "%s{'name':'j-node-%d','index':%d,'attempt':5,'node':'n%d'%s}", k ? "," : "", k,
                            k, k, k == 1 ? "," REFUSED : "");
        snprintf(text + len, sizeof(text) - (size_t)len, "]}");
        struct plancase c = run(text, "{}");
        static const char *const WANT[] = {"", "n1", "b n1", "a b n1"};
        assert_string_equal(avoided(&c, names), WANT[NODES[i][1]]);
        plancase_free(&c);
    }
}

/* What made the job avoid a node that is in the list does not acquit the next one; and one that was given up is not taken again. */
static void test_beside_others(void **state)
{
    char names[128];
    struct plancase c = run("{" STATUS(FAILED("n0", "OutOfcpu", AT) "," ONCE, "") "}", ENDS(REFUSED));

    (void)state;
    assert_string_equal(avoided(&c, names), "=");
    plancase_free(&c);
    c = run("{" STATUS(FAILED("n0", "OutOfcpu", AT) "," ONCE, "") "}",
            "{'status':{'avoidedNodes':[{'node':'n0','since':'00:06:00'}]},'pods':[{" POD_0 "},{" POD_1
            "," REFUSED "}]}");
    assert_string_equal(avoided(&c, names), "n1");
    plancase_free(&c);
    c = run("{" STATUS(ONCE, "") "}",
            "{'status':{'avoidedNodes':[{'node':'n1','since':'00:06:00','dropped':true}]},'pods':[{" POD_0
            "},{" POD_1 "," REFUSED "}]}");
    assert_string_equal(avoided(&c, names), "=");
    plancase_free(&c);
}

/* ---- the hour */

static void test_how_long(void **state)
{
    static const char RUNS[] =
        "{" STATUS(ONCE, ",'avoidedNodes':[" SINCE("n1", "00:06:00", "") "," SINCE(
                             "n0", "00:05:00", ",'dropped':true") "]") ",'pods':[{" POD_0 "},{" POD_1 "}]}";
    char names[128];
    struct plancase c = run(RUNS, "{'now':'01:04:59'}");

    (void)state;
    assert_string_equal(avoided(&c, names), "=");
    assert_int_equal(number(c.plan, "requeueInMs"), 1000);
    plancase_free(&c);
    c = run(RUNS, "{'now':'01:05:00'}");
    assert_string_equal(avoided(&c, names), "n1");
    assert_int_equal(number(c.plan, "requeueInMs"), 60000);
    plancase_free(&c);
    c = run(RUNS, "{'now':'01:06:00'}");
    assert_string_equal(avoided(&c, names), "-");
    assert_int_equal(number(c.plan, "requeueInMs"), -1);
    plancase_free(&c);
    c = run(RUNS, "{'spec':{'runPolicy':{'avoidNodes':false}}}");
    assert_string_equal(avoided(&c, names), "-");
    plancase_free(&c);
    /* A time of a wrong clock is now; a job that has ended stays as it is. */
    c = run(
        RUNS,
        "{'status':{'avoidedNodes':[{'node':'n1','since':'2027-01-01T00:00:00Z'},{'since':'00:05:00'},7]}}");
    assert_int_equal(number(c.plan, "requeueInMs"), 3600000);
    plancase_free(&c);
    c = run(RUNS,
            "{'now':'01:05:00','status':{'avoidedNodes':[{'node':'a','since':'00:05:00'},{'node':'b','since':"
            "'00:06:00'},{'node':'c','since':'00:06:00'},{'node':'d','since':'00:06:00'},{'node':'e','since':"
            "'00:06:00'},{'node':'f','since':'00:06:00'},{'node':'g','since':'00:06:00'},{'node':'h','since':"
            "'00:06:00'},{'node':'i','since':'00:06:00'},{'node':'k','since':'00:06:00'}]}}");
    assert_string_equal(avoided(&c, names), "b c d e f g h");
    plancase_free(&c);
    c = run(RUNS, "{'now':'01:06:00','status':{'phase':'Succeeded','completionTime':'00:10:00'}}");
    assert_string_equal(avoided(&c, names), "=");
    plancase_free(&c);
}

/* A pause does not end the hour. */
static void test_paused(void **state)
{
    static const char PAUSED[] =
        "{'base':['two','two-paused'],'bodies':true,'status':{'avoidedNodes':[" SINCE("n1", "00:06:00",
                                                                                      "") "]}}";
    char names[128];
    struct plancase c = run(PAUSED, "{'spec':{'suspend':true},'now':'02:00:00'}");

    (void)state;
    assert_string_equal(avoided(&c, names), "=");
    plancase_free(&c);
    c = run(PAUSED, "{'now':'00:30:00'}");
    assert_non_null(
        strstr(json_print(c.plan, &shared.sentences.arena), ANNOTATION_AVOIDED_NODES "\":\"n1\""));
    plancase_free(&c);
    c = run(PAUSED, "{'now':'02:00:00'}");
    assert_string_equal(avoided(&c, names), "-");
    assert_null(strstr(json_print(c.plan, &shared.sentences.arena), ANNOTATION_AVOIDED_NODES));
    plancase_free(&c);
}

/* ---- no other node */

#define WAITING(created)                                                                                     \
    "'name':'j-node-1','index':1,'attempt':5,'phase':'Pending','created':'2026-01-01T00:" created "Z'"
#define HELD ",'unschedulable':'0/2 nodes'"
#define ANNOTATED ",'also':{'metadata':{'annotations':{'" ANNOTATION_AVOIDED_NODES "':'n1'}}}"
#define WAITS(created) "{'pods':[{" POD_0 "},{" WAITING(created) HELD ANNOTATED "}]"
#define AVOIDS                                                                                               \
    "{" STATUS(                                                                                              \
        ONCE,                                                                                                \
        ",'phase':'Pending','conditions':[{'Running':false,'reason':'PodsPending','since':'00:08:00'}],"     \
        "'avoidedNodes':[" SINCE("n1", "00:08:00", "") "]") "}"

static bool deletes(const struct plancase *c, const char *pod)
{
    const cJSON *action;
    bool found = false;

    cJSON_ArrayForEach(action, json_child(c->plan, "actions"))
    {
        const char *what = json_str(action, "delete");
        found |= what && strstr(what, pod);
    }
    return found;
}

static void test_no_other_node(void **state)
{
    char names[128];
    struct plancase c = run(AVOIDS, WAITS("09:01") "}");

    (void)state;
    assert_string_equal(avoided(&c, names), "=");
    assert_int_equal(number(c.plan, "requeueInMs"), 1000);
    plancase_free(&c);
    c = run(AVOIDS, WAITS("09:01") ",'spec':{'runPolicy':{'startDeadlineSeconds':0}}}"); /* no deadline */
    assert_string_equal(avoided(&c, names), "=");
    plancase_free(&c);
    c = run(AVOIDS, WAITS("09:00") "}"); /* the whole attempt: the next one may use the node */
    assert_string_equal(avoided(&c, names), "n1!");
    assert_int_equal(number(written(&c), "attempt"), 6);
    assert_int_equal(number(written(&c), "restarts"), -1);
    assert_true(deletes(&c, "j-node-0") && deletes(&c, "j-node-1"));
    plancase_free(&c);
    /* Whatever became of the list: the pods still avoid the node. */
    c = run(AVOIDS,
            WAITS("09:00") ",'status':{'avoidedNodes':null},'spec':{'runPolicy':{'avoidNodes':false}}}");
    assert_int_equal(number(written(&c), "attempt"), 6);
    plancase_free(&c);
    /* A shorter startDeadlineSeconds shortens the wait, and is not counted. */
    c = run(AVOIDS, WAITS("09:40") ",'spec':{'runPolicy':{'startDeadlineSeconds':20}}}");
    assert_string_equal(avoided(&c, names), "n1!");
    assert_int_equal(number(written(&c), "admissionCount"), -1);
    plancase_free(&c);
    c = run(AVOIDS, WAITS("09:50") ",'spec':{'runPolicy':{'startDeadlineSeconds':20}}}");
    assert_int_equal(number(written(&c), "attempt"),
                     -1); /* j-node-0 is older, but its start is not what is late */
    plancase_free(&c);
    /* An API server whose clock is an hour ahead. */
    c = run(AVOIDS, WAITS("59:00") "}");
    assert_int_equal(number(c.plan, "requeueInMs"), 60000);
    plancase_free(&c);
    /* A failure that is not judged yet goes first. */
    c = run(AVOIDS, "{'pods':[{" POD_0 ",'exit':1},{" WAITING("09:00") HELD ANNOTATED "}]}");
    assert_string_equal(avoided(&c, names), "=");
    plancase_free(&c);
    /* Without a node for another reason, or without anything to avoid, it waits on. */
    c = run(AVOIDS, "{'pods':[{" POD_0 "},{" WAITING("09:00") HELD "}]}");
    assert_string_equal(avoided(&c, names), "=");
    plancase_free(&c);
    c = run(AVOIDS, "{'pods':[{" POD_0 "},{" WAITING("09:00") ANNOTATED "}]}");
    assert_string_equal(avoided(&c, names), "=");
    plancase_free(&c);
}

/* In an attempt that ran, only the pods that wait are replaced. */
static void test_no_other_node_for_a_replaced_pod(void **state)
{
    char names[128];
    struct plancase c = run(AVOIDS, WAITS("09:00") ",'status':{'counts':{'ranAttempt':5}}}");

    (void)state;
    assert_string_equal(avoided(&c, names), "n1!");
    assert_int_equal(number(written(&c), "attempt"), -1);
    assert_int_equal(number(written(&c), "restarts"), -1);
    assert_true(!deletes(&c, "j-node-0") && deletes(&c, "j-node-1"));
    plancase_free(&c);
}

/* ---- the pod */

/* The affinity of the pod that is created from a template with this one; NULL: none. */
static void assert_affinity(const char *spec, const char *want)
{
    static const char *const AFFINITY[] = {"body", "spec", "affinity", NULL};
    static const char *const NAMES[] = {"body", "metadata", "annotations", ANNOTATION_AVOIDED_NODES, NULL};
    char text[1024];
    const cJSON *action, *pod = NULL;
    cleanup_json cJSON *wanted = jsontext_parse(want);

    snprintf(text, sizeof(text),
             "{'base':['one'],'bodies':true,'spec':{'replicaSpecs':[{'type':'node','replicas':1,'template':{'"
             "metadata':{'annotations':{'" ANNOTATION_AVOIDED_NODES
             "':'mine'}},'spec':{%s'containers':[{'name':'pytorch','image':'i'}]}}}]},"
             "'status':{'phase':'Pending','counts':{'attempt':1},'avoidedNodes':[" SINCE(
                 "n0", "00:09:00", "") "," SINCE("n1", "00:09:00", "") "," SINCE("n2", "00:09:00",
                                                                                 ",'dropped':true") "]}}",
             spec);
    struct plancase c = run(text, "{}");
    cJSON_ArrayForEach(action, json_child(c.plan, "actions")) pod = json_str(action, "create") ? action : pod;
    assert_non_null(pod);
    const cJSON *got = json_find(pod, AFFINITY);
    if (got ? !cJSON_Compare(got, wanted, true) : !cJSON_IsNull(wanted))
        fail_msg("%s: got %s", spec, got ? json_print(got, &shared.sentences.arena) : "none");
    const cJSON *names = json_find(pod, NAMES);
    assert_string_equal(strstr(want, "NotIn") ? "n0,n1" : "none", names ? names->valuestring : "none");
    plancase_free(&c);
}

#define REQUIRED(terms) "{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{" terms "}}}"
#define OTHERS                                                                                               \
    "{'key':'metadata.name','operator':'NotIn','values':['n0']},"                                            \
    "{'key':'metadata.name','operator':'NotIn','values':['n1']}"
#define TERMS(list) REQUIRED("'nodeSelectorTerms':[" list "]")

static void test_affinity(void **state)
{
    (void)state;
    assert_affinity("", TERMS("{'matchFields':[" OTHERS "]}"));
    assert_affinity("'affinity':null,", TERMS("{'matchFields':[" OTHERS "]}"));
    assert_affinity("'affinity':{'nodeAffinity':null},", TERMS("{'matchFields':[" OTHERS "]}"));
    assert_affinity(
        "'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[]},'podAffinity':{}}"
        ",",
        "{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[],"
        "'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{'matchFields':[" OTHERS
        "]}]}},'podAffinity':{}}");
    assert_affinity("'nodeName':'n1',", "null"); /* the kubelet would refuse it */
    assert_affinity(
        "'affinity':" TERMS("{'matchExpressions':[{'key':'a','operator':'Exists'}],'matchFields':null}") ",",
        TERMS("{'matchExpressions':[{'key':'a','operator':'Exists'}],'matchFields':[" OTHERS "]}"));
    assert_affinity(
        "'affinity':" TERMS(
            "{},{'matchFields':[{'key':'metadata.name','operator':'In','values':['n2']}]}") ",",
        TERMS("{},{'matchFields':[{'key':'metadata.name','operator':'In','values':['n2']}," OTHERS "]}"));
}

static int open_cases(void **state)
{
    struct err err;

    (void)state;
    return plancases_open(&shared, &err);
}

static int close_cases(void **state)
{
    (void)state;
    plancases_close(&shared);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_failures_accuse),
        cmocka_unit_test(test_one_pod),
        cmocka_unit_test(test_replaced_pods),
        cmocka_unit_test(test_how_many),
        cmocka_unit_test(test_beside_others),
        cmocka_unit_test(test_how_long),
        cmocka_unit_test(test_paused),
        cmocka_unit_test(test_no_other_node),
        cmocka_unit_test(test_no_other_node_for_a_replaced_pod),
        cmocka_unit_test(test_affinity),
    };

    return cmocka_run_group_tests(tests, open_cases, close_cases);
}
