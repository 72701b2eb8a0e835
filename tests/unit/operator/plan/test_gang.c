/* test_gang.c - which attempts have a PodGroup, for each scheduler; what is in it and in their pods; when it is deleted. */
#include "jsontext.h"
#include "operator/plan/plan.h"
#include "podbrief.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

enum { ACTIONS_BYTES = 16384, PODS_MAX = 3 };

#define NODES(replicas, members)                                                                             \
    "'replicaSpecs':[{'type':'node','replicas':" replicas ",'template':{" members                            \
    "'spec':{'containers':[{'name':'pytorch','image':'i'}]}}}]"
#define TORCHRUN "'torchrunConfig':{'enabled':true,'maxRestarts':1},"
#define POLICY                                                                                               \
    "'runPolicy':{'schedulingPolicy':{'minAvailable':2,'queue':'q','priorityClass':'high','"                 \
    "scheduleTimeoutSeconds':90}},"

static int64_t deadline_s; /* plan_gangs.start_deadline_s */

/* What is planned, one action a line: "create PodGroup j-0 {...}". */
struct planned {
    char text[ACTIONS_BYTES];
};

static void write_action(const struct action *act, struct planned *ret)
{
    static const char *const KINDS[] = {"status", "event", "delete", "create", "patch"};
    size_t len = strlen(ret->text);

    snprintf(ret->text + len, sizeof(ret->text) - len, "%s %s %s %s\n", KINDS[act->kind],
             act->child == CHILD_GROUP ? gang_schedulers[act->gang]
             : act->child == CHILD_POD ? "pod"
                                       : "other",
             act->name ? act->name : "",
             act->kind == ACTION_EVENT ? act->message
             : act->body               ? act->body
                                       : "");
}

static void plan(const char *name, const char *spec, const char *status, const char *const *briefs,
                 enum gang_scheduler scheduler, struct planned *ret)
{
    static char text[8192];
    struct arena arena = {0};
    struct err err;
    struct plan out;
    struct pod *pods[PODS_MAX];
    struct plan_input in = {.now_ms = 1767226200000,
                            .tensorboard_image = "t",
                            .gangs = {scheduler, scheduler == GANG_NATIVE ? NULL : "gangs", deadline_s}};

    snprintf(text, sizeof(text),
             "{'metadata':{'name':'%s','namespace':'ns','uid':'u-1','resourceVersion':'7','generation':1},'"
             "spec':{%s}%s%s}",
             name, spec, status ? ",'status':" : "", status ? status : "");
    cleanup_trainjob struct trainjob *job = trainjob_decode(jsontext_parse(text), &err);
    assert_non_null(job);
    if (job->spec_error)
        fail_msg("%s", job->spec_error);
    for (; briefs && briefs[in.n_pods]; in.n_pods++) {
        cleanup_json cJSON *brief = jsontext_parse(briefs[in.n_pods]);
        cleanup_json cJSON *pod = brief_pod(brief, name, "u-1", job->spec.hash);
        pods[in.n_pods] = pod_decode(pod, NULL, &err);
    }
    in.job = job;
    in.pods = (const struct pod *const *)pods;
    plan_trainjob(&in, &arena, &out);
    ret->text[0] = '\0';
    for (int i = 0; i < out.n_actions; i++)
        write_action(&out.actions[i], ret);
    for (int i = 0; i < in.n_pods; i++)
        free(pods[i]);
    arena_release(&arena);
}

static void expect(const struct planned *p, const char *name, const char *words)
{
    if (!strstr(p->text, words))
        fail_msg("%s: expected %s in\n%.3000s", name, words, p->text);
}

static void expect_none(const struct planned *p, const char *name, const char *words)
{
    if (strstr(p->text, words))
        fail_msg("%s: expected no %s in\n%.3000s", name, words, p->text);
}

#define OWNED                                                                                                \
    "\"metadata\":{\"name\":\"j-0\",\"namespace\":\"ns\",\"labels\":{\"batch.tensorstack.dev/"               \
    "job\":\"j\",\"tensorstack.dev/owner-name\":\"j\"},"                                                     \
    "\"ownerReferences\":[{\"apiVersion\":\"batch.tensorstack.dev/"                                          \
    "v1beta1\",\"kind\":\"PyTorchTrainingJob\",\"name\":\"j\",\"uid\":\"u-1\",\"controller\":true,"          \
    "\"blockOwnerDeletion\":true}]},"

/* The PodGroup goes before the first pod. */
static void test_objects(void **state)
{
    static const struct {
        const char *name, *spec;
        enum gang_scheduler scheduler;
        const char *group, *pod;
    } ROWS[] = {
        {"coscheduling", TORCHRUN NODES("3", ""), GANG_COSCHEDULING,
         "create coscheduling j-0 "
         "{\"apiVersion\":\"scheduling.x-k8s.io/v1alpha1\",\"kind\":\"PodGroup\"," OWNED
         "\"spec\":{\"minMember\":3}}\ncreate pod j-node-0",
         "\"scheduling.x-k8s.io/pod-group\":\"j-0\""},
        {"coscheduling, all fields", TORCHRUN POLICY NODES("3", ""), GANG_COSCHEDULING,
         "\"spec\":{\"minMember\":2,\"scheduleTimeoutSeconds\":90}}\n",
         "\"priorityClassName\":\"high\",\"schedulerName\":\"gangs\""},
        {"volcano", TORCHRUN NODES("3", ""), GANG_VOLCANO,
         "{\"apiVersion\":\"scheduling.volcano.sh/v1beta1\",\"kind\":\"PodGroup\"," OWNED
         "\"spec\":{\"minMember\":3,\"minResources\":{}}}\n",
         "\"scheduling.k8s.io/group-name\":\"j-0\""},
        {"volcano, all fields", TORCHRUN POLICY NODES("3", ""), GANG_VOLCANO,
         "\"spec\":{\"minMember\":2,\"queue\":\"q\",\"priorityClassName\":\"high\",\"minResources\":{}}}\n",
         "\"priorityClassName\":\"high\",\"schedulerName\":\"gangs\""},
        {"volcano, T9k's queue",
         TORCHRUN "'scheduler':{'t9kScheduler':{'queue':'t','priority':50}}," NODES("3", ""), GANG_VOLCANO,
         "\"queue\":\"t\"", "\"schedulerName\":\"gangs\""},
        {"native", TORCHRUN POLICY NODES("3", ""), GANG_NATIVE,
         "create native j-0 {\"kind\":\"PodGroup\"," OWNED
         "\"spec\":{\"schedulingPolicy\":{\"gang\":{\"minCount\":2}}}}\ncreate pod j-node-0",
         "\"schedulingGroup\":{\"podGroupName\":\"j-0\"}"},
        {"elastic", TORCHRUN "'elastic':{'enabled':true,'minReplicas':2,'maxReplicas':8}," NODES("3", ""),
         GANG_COSCHEDULING, "\"minMember\":2", "pod j-node-2"},
        {"two types",
         TORCHRUN "'replicaSpecs':[{'type':'node','template':{'spec':{'containers':[{'name':'c'}]}}},{'type':"
                  "'b','replicas':4,'template':{'spec':{'containers':[{'name':'c'}]}}}]",
         GANG_COSCHEDULING, "\"minMember\":5", "pod j-b-3"},
        {"the first pod does not go before the others", NODES("3", ""), GANG_COSCHEDULING,
         "create coscheduling j-0 ", "pod j-node-2"},
        {"nor with the default scheduler", NODES("3", ""), GANG_NATIVE, "create native j-0 ", "pod j-node-2"},
        {"the template's default scheduler",
         "'replicaSpecs':[{'type':'node','template':{'spec':{'schedulerName':'default-scheduler','containers'"
         ":[{'name':'c'}]}}}]",
         GANG_VOLCANO, "create volcano j-0 ", "\"schedulerName\":\"gangs\""},
        {"the template's priority wins",
         POLICY "'replicaSpecs':[{'type':'node','replicas':2,'template':{'spec':{'priorityClassName':'low','"
                "containers':[{'name':'c'}]}}}]",
         GANG_VOLCANO, "create volcano j-0 ", "\"priorityClassName\":\"low\""},
        {"a priority needs no gang", TORCHRUN POLICY NODES("3", ""), GANG_NONE, "create pod j-node-0",
         "\"priorityClassName\":\"high\""},
    };
    static struct planned p;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        plan("j", ROWS[i].spec, NULL, NULL, ROWS[i].scheduler, &p);
        expect(&p, ROWS[i].name, ROWS[i].group);
        expect(&p, ROWS[i].name, ROWS[i].pod);
    }
    plan("j", TORCHRUN "'tensorboardSpec':{'logDir':{'pvc':[{'name':'c'}]}}," NODES("2", ""), "{'attempt':0}",
         (const char *[]){"{'name':'j-node-0','index':0,'node':'n0'}", NULL}, GANG_VOLCANO, &p);
    expect(&p, "TensorBoard", "create other j-tensorboard");
    expect_none(&p, "TensorBoard", "schedulerName");
    plan("a-name-with-more-than-fifty-two-letters-has-the-jobs-uid", TORCHRUN NODES("2", ""), NULL, NULL,
         GANG_VOLCANO, &p);
    expect(&p, "a long name", "create volcano u-1-0 ");
}

/* Whose pods are not put into a PodGroup, and what of the spec then has no effect. */
static void test_not_ours(void **state)
{
    static const struct {
        const char *name, *spec;
        enum gang_scheduler scheduler;
        const char *brief;
    } ROWS[] = {
        {"none", TORCHRUN NODES("2", ""), GANG_NONE, NULL},
        {"a label", TORCHRUN NODES("2", "'metadata':{'labels':{'scheduling.x-k8s.io/pod-group':'mine'}},"),
         GANG_COSCHEDULING, NULL},
        {"an annotation",
         TORCHRUN NODES("2", "'metadata':{'annotations':{'scheduling.k8s.io/group-name':'mine'}},"),
         GANG_VOLCANO, NULL},
        {"a scheduler",
         "'replicaSpecs':[{'type':'node','template':{'spec':{'schedulerName':'mine','containers':[{'name':'c'"
         "}]}}}]",
         GANG_VOLCANO, NULL},
        {"a native group",
         "'replicaSpecs':[{'type':'node','template':{'spec':{'schedulingGroup':{'podGroupName':'mine'},'"
         "containers':[{'name':'c'}]}}}]",
         GANG_NATIVE, NULL},
        {"of the second type",
         "'replicaSpecs':[{'type':'a','template':{'spec':{'containers':[{'name':'c'}]}}},{'type':'b','"
         "template':{'spec':{'schedulerName':'mine','containers':[{'name':'c'}]}}}]",
         GANG_VOLCANO, NULL},
        {"the attempt began without", TORCHRUN NODES("2", ""), GANG_COSCHEDULING,
         "{'name':'j-node-0','index':0,'node':'n0'}"},
    };
    static struct planned p;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        plan("j", ROWS[i].spec, ROWS[i].brief ? "{'attempt':0}" : NULL, (const char *[]){ROWS[i].brief, NULL},
             ROWS[i].scheduler, &p);
        expect(&p, ROWS[i].name, "create pod");
        expect_none(&p, ROWS[i].name, "create coscheduling");
        expect_none(&p, ROWS[i].name, "create volcano");
        expect_none(&p, ROWS[i].name, "create native");
        expect_none(&p, ROWS[i].name, "batch.tensorstack.dev/gang");
        expect_none(&p, ROWS[i].name, "\"j-0\"");
    }
    plan("j", TORCHRUN POLICY NODES("3", ""), "{'attempt':0}", NULL, GANG_NONE, &p);
    expect(&p, "ignored",
           "spec.runPolicy.schedulingPolicy.minAvailable and 2 more: no effect with the operator's "
           "--gang-scheduler=none");
    plan("j", TORCHRUN "'scheduler':{'t9kScheduler':{'queue':'t','priority':50}}," NODES("3", ""),
         "{'attempt':0}", NULL, GANG_COSCHEDULING, &p);
    expect(&p, "ignored",
           "spec.scheduler.t9kScheduler.queue and 1 more: no effect with the operator's "
           "--gang-scheduler=coscheduling");
    plan("j", TORCHRUN POLICY NODES("3", ""), "{'attempt':0}", NULL, GANG_VOLCANO, &p);
    expect(&p, "ignored", "spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds: no effect");
}

#define IN_GROUP ",'also':{'metadata':{'labels':{'batch.tensorstack.dev/gang':'coscheduling'}}}"
#define RAN                                                                                                  \
    "{'attempt':0,'startTime':'2026-01-01T00:00:00Z','phase':'Running','tasks':[{'type':'node','replicas':[" \
    "{'name':'j-node-0','uid':'uid-j-node-0-0'},{'name':'j-node-1','uid':'uid-j-node-1-0'}]}]}"

/* With the attempt, before its pods; not while it goes on. */
static void test_deleted(void **state)
{
    static const char ONE[] = "{'name':'j-node-0','index':0,'node':'n0'" IN_GROUP "}";
    static const char TWO[] = "{'name':'j-node-1','index':1,'node':'n0'" IN_GROUP "}";
    static const char KILLED[] =
        "{'name':'j-node-1','index':1,'node':'n0','phase':'Failed','exit':137" IN_GROUP "}";
    static const char ENDS[] =
        "{'name':'j-node-1','index':1,'node':'n0','terminating':'2026-01-01T00:10:30Z'" IN_GROUP "}";
    static const char DONE[] =
        "{'name':'j-node-0','index':0,'node':'n0','phase':'Succeeded','exit':0" IN_GROUP "}";
    static const struct {
        const char *name, *members, *status;
        const char *pods[3];
        enum gang_scheduler scheduler;
        const char *want;
        int n;
    } ROWS[] = {
        {"it runs", TORCHRUN, RAN, {ONE, TWO}, GANG_COSCHEDULING, "", 0},
        {"it restarts", TORCHRUN, RAN, {ONE, KILLED}, GANG_COSCHEDULING, "delete coscheduling j-0", 1},
        {"after a crash of the operator",
         TORCHRUN,
         "{'attempt':1}",
         {ONE, TWO},
         GANG_COSCHEDULING,
         "delete coscheduling j-0",
         1},
        {"the pods are leaving", TORCHRUN, "{'attempt':1}", {ENDS}, GANG_COSCHEDULING, "", 0},
        {"the option has changed",
         TORCHRUN,
         "{'attempt':1}",
         {ONE, TWO},
         GANG_NONE,
         "delete coscheduling j-0",
         1},
        {"one pod is replaced",
         TORCHRUN "'runPolicy':{'restartScope':'Replica'},",
         RAN,
         {ONE, KILLED},
         GANG_COSCHEDULING,
         "delete pod j-node-1",
         0},
        {"it is replaced",
         TORCHRUN "'runPolicy':{'restartScope':'Replica'},",
         "{'attempt':0,'ranAttempt':0}",
         {ONE},
         GANG_COSCHEDULING,
         "create coscheduling j-0",
         1},
        {"it is paused",
         TORCHRUN "'suspend':true,",
         RAN,
         {ONE, TWO},
         GANG_COSCHEDULING,
         "delete coscheduling j-0",
         1},
        {"paused before it had pods",
         TORCHRUN "'suspend':true,",
         RAN,
         {NULL},
         GANG_VOLCANO,
         "delete volcano j-0",
         1},
        {"it succeeds", TORCHRUN, RAN, {DONE, TWO}, GANG_COSCHEDULING, "delete coscheduling j-0", 1},
        {"it succeeds, and the option has changed",
         TORCHRUN,
         RAN,
         {DONE, TWO},
         GANG_NONE,
         "delete coscheduling j-0",
         1},
        {"it had succeeded",
         TORCHRUN,
         "{'phase':'Succeeded','attempt':0,'completionTime':'2026-01-01T00:00:00Z'}",
         {DONE},
         GANG_COSCHEDULING,
         "",
         0},
    };
    static struct planned p;
    static char spec[1024];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        int n = 0;
        snprintf(spec, sizeof(spec), "%s" NODES("2", ""), ROWS[i].members);
        plan("j", spec, ROWS[i].status, ROWS[i].pods, ROWS[i].scheduler, &p);
        expect(&p, ROWS[i].name, ROWS[i].want);
        for (const char *at = p.text; (at = strstr(at, " j-")) != NULL; at++)
            n += strncmp(at, " j-0", 4) == 0 || strncmp(at, " j-1", 4) == 0;
        if (n != ROWS[i].n)
            fail_msg("%s: %d PodGroups in\n%.3000s", ROWS[i].name, n, p.text);
        const char *group = strstr(p.text, "delete coscheduling"), *pod = strstr(p.text, "delete pod");
        assert_true(!group || !pod || group < pod);
    }
}

/* The API server dropped the PodGroup of a pod, which a scheduler may have bound since: it is no pod of the attempt, also after
 * a crash of the operator. Its end counts nothing. */
static void test_dropped(void **state)
{
    static const char *const PODS[] = {"", ",'terminating':'2026-01-01T00:10:30Z'"};
    static struct planned p;
    char pod[256];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(PODS); i++) {
        const char *name = PODS[i][0] ? "it is leaving" : "it runs";
        snprintf(
            pod, sizeof(pod),
            "{'name':'j-node-0','index':0,'node':'n0'%s,'also':{'metadata':{'labels':{'batch.tensorstack.dev/"
            "gang':'native'}}}}",
            PODS[i]);
        plan("j", TORCHRUN NODES("2", ""), "{'attempt':0}", (const char *[]){pod, NULL}, GANG_NATIVE, &p);
        expect_none(&p, name, "uid-j-node-0-0");
        expect_none(&p, name, "create pod");
        expect_none(&p, name, "delete native");
        if (!PODS[i][0])
            expect(&p, name, "delete pod j-node-0");
    }
    plan("j", TORCHRUN NODES("2", ""), "{'attempt':0}",
         (const char *[]){
             "{'name':'j-node-0','index':0,'node':'n0','also':{'metadata':{'labels':{'batch."
             "tensorstack.dev/gang':'native'}},'spec':{'schedulingGroup':{'podGroupName':'j-0'}}}}",
             NULL},
         GANG_NATIVE, &p);
    expect(&p, "a member", "uid-j-node-0-0");
    expect_none(&p, "a member", "delete pod j-node-0");
}

#define WAITED                                                                                               \
    "{'attempt':0,'conditions':[{'type':'Running','status':'False','lastTransitionTime':'2026-01-01T00:01:"  \
    "00Z'}]}"
#define STUCK "'phase':'Pending','unschedulable':'0/3 nodes are available','created':'2026-01-01T00:0"

/* Now is 00:10:00; of u-1's first attempt the deadline is 1.NNN times 60 s. */
static void test_start_deadline(void **state)
{
    static const char RUNS[] = "{'name':'j-node-0','index':0,'node':'n0','created':'2026-01-01T00:01:00Z'}";
    static const char WAITS[] = "{'name':'j-node-1','index':1," STUCK "1:00Z'}";
    static const char YOUNG[] = "{'name':'j-node-1','index':1," STUCK "9:30Z'}";
    static const char PULLS[] =
        "{'name':'j-node-1','index':1,'phase':'Pending','node':'n0','created':'2026-01-01T00:01:00Z'}";
    static const char GATED[] =
        "{'name':'j-node-1','index':1," STUCK "1:00Z','also':{'spec':{'schedulingGates':[{'name':'g'}]}}}";
    static const char GANG[] =
        "{'name':'j-node-0','index':0,'node':'n0','created':'2026-01-01T00:01:00Z'" IN_GROUP "}";
    static const struct {
        const char *name, *members, *metadata, *pods[3];
        bool ends;
    } ROWS[] = {
        {"a part of it runs", TORCHRUN, "", {RUNS, WAITS}, true},
        {"Never", TORCHRUN "'runPolicy':{'backoffLimit':0},", "", {RUNS, WAITS}, true},
        {"not yet",
         TORCHRUN,
         "",
         {"{'name':'j-node-0','index':0,'node':'n0','created':'2026-01-01T00:09:30Z'}", YOUNG},
         false},
        {"it has nodes", TORCHRUN, "", {RUNS, PULLS}, false},
        {"0 turns it off", TORCHRUN "'runPolicy':{'startDeadlineSeconds':0},", "", {RUNS, WAITS}, false},
        {"its own goes first",
         TORCHRUN "'runPolicy':{'startDeadlineSeconds':3600},",
         "",
         {RUNS, WAITS},
         false},
        {"a gate beside it", TORCHRUN, "", {"{'name':'j-node-0','index':0," STUCK "1:00Z'}", GATED}, false},
        {"a gate", TORCHRUN, "", {RUNS, GATED}, false},
        {"a PodGroup of its own",
         TORCHRUN,
         "'metadata':{'labels':{'scheduling.x-k8s.io/pod-group':'g'}},",
         {RUNS, WAITS},
         false},
        {"a PodGroup", TORCHRUN, "", {GANG, WAITS}, false},
    };
    static struct planned p;
    static char spec[1024];

    (void)state;
    deadline_s = 60;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        snprintf(spec, sizeof(spec),
                 "%s'replicaSpecs':[{'type':'node','replicas':2,'template':{%s'spec':{'containers':[{'name':'"
                 "c'}]}}}]",
                 ROWS[i].members, ROWS[i].metadata);
        plan("j", spec, WAITED, ROWS[i].pods, GANG_NONE, &p);
        if (!ROWS[i].ends) {
            expect_none(&p, ROWS[i].name, "delete pod");
            continue;
        }
        expect(&p, ROWS[i].name, "1 of 2 pods ran when the seconds of --gang-start-deadline (");
        expect(&p, ROWS[i].name, "attempt 1 begins now; not counted");
        expect(&p, ROWS[i].name, "\"admissionCount\":0,\"resumeCount\":0,\"restarts\":1");
        expect(&p, ROWS[i].name, "delete pod j-node-0");
    }
    plan("j", TORCHRUN NODES("1", ""), WAITED,
         (const char *[]){"{'name':'j-node-0','index':0," STUCK "1:00Z'}", NULL}, GANG_NONE, &p);
    expect_none(&p, "one pod blocks nobody", "delete pod");
    deadline_s = 0;
    snprintf(spec, sizeof(spec), "%s" NODES("2", ""), TORCHRUN);
    plan("j", spec, WAITED, (const char *[]){RUNS, WAITS, NULL}, GANG_NONE, &p);
    expect_none(&p, "no deadline", "delete pod");
}

static void test_min_resources(void **state)
{
    static const struct {
        const char *name, *specs, *want;
    } ROWS[] = {
        {"the pods together",
         "'replicas':3,'template':{'spec':{'containers':[{'name':'c','resources':{'requests':{'cpu':'500m','"
         "memory':'1Gi'}}}]}}",
         "{\"cpu\":\"1500m\",\"memory\":\"3221225472\"}"},
        {"limits are requests, too",
         "'replicas':2,'template':{'spec':{'containers':[{'name':'c','resources':{'requests':{'cpu':1},'"
         "limits':{'cpu':4,'nvidia.com/gpu':'8'}}}]}}",
         "{\"cpu\":\"2\",\"nvidia.com/gpu\":\"16\"}"},
        {"containers beside it",
         "'template':{'spec':{'containers':[{'name':'c','resources':{'requests':{'cpu':'0.1'}}},{'name':'d','"
         "resources':{'requests':{'cpu':'.2'}}}]}}",
         "{\"cpu\":\"300m\"}"},
        {"a sidecar beside it, not what ends before it",
         "'template':{'spec':{'containers':[{'name':'c','resources':{'requests':{'cpu':1}}}],'initContainers'"
         ":[{'name':'s','restartPolicy':'Always','resources':{'requests':{'cpu':1}}},{'name':'i','resources':"
         "{'requests':{'cpu':3}}}]}}",
         "{\"cpu\":\"2\"}"},
        {"nothing", "'template':{'spec':{'containers':[{'name':'c','resources':{'requests':{'cpu':null}}}]}}",
         "{\"cpu\":\"0\"}"},
    };
    static struct planned p;
    static char spec[1024], want[256];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        snprintf(spec, sizeof(spec), TORCHRUN "'replicaSpecs':[{'type':'node',%s}]", ROWS[i].specs);
        snprintf(want, sizeof(want), "\"minResources\":%s}}\n", ROWS[i].want);
        plan("j", spec, NULL, NULL, GANG_VOLCANO, &p);
        expect(&p, ROWS[i].name, want);
    }
    plan("j",
         "'runPolicy':{'schedulingPolicy':{'minAvailable':3}},"
         "'replicaSpecs':[{'type':'a','template':{'spec':{'containers':[{'name':'c','resources':{'requests':{"
         "'cpu':10}}}]}}},"
         "{'type':'b','replicas':4,'template':{'spec':{'containers':[{'name':'c','resources':{'requests':{'"
         "cpu':1}}}]}}}]",
         NULL, NULL, GANG_VOLCANO, &p);
    expect(&p, "of the first three", "\"minResources\":{\"cpu\":\"12\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects),        cmocka_unit_test(test_not_ours),
        cmocka_unit_test(test_deleted),        cmocka_unit_test(test_dropped),
        cmocka_unit_test(test_start_deadline), cmocka_unit_test(test_min_resources)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
