/* test_tenants.c - what a hostile tenant writes into the Workloads and queue labels of its namespace, while another tenant's job
 * waits in its queue: it is admitted and succeeds as without that, nothing of it is counted or touched, and the operator goes
 * quiet. Each shape is there four times: as the Workload of a job of the tenant's own, with the other tenant's job as its
 * controller under two names, one of them that of the other's Workload, and with a job that does not exist.
 *
 * usage: test_tenants [shape]
 */
#include "faults.h"
#include "lab.h"
#include "operator/api/workload.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 1 << 21, NAMES_MAX = 96, MANY = 200, SETTLE_MS = 600000 };

#define EVIL LAB_KUEUE "/namespaces/evil/workloads"
#define EVIL_JOB "/apis/" TRAINJOB_API_VERSION "/namespaces/evil/" TRAINJOB_PLURAL "/e"
#define TEMPLATE(spec) "'template':{'spec':{" spec "}}"
#define SETS(members) "'spec':{'queueName':'q','podSets':[{'name':'node'," members "}]}"
#define CONTAINER(members) SETS("'count':1," TEMPLATE("'containers':[{'name':'c'," members "}]"))
#define CONDITIONS(members) "'status':{'conditions':[" members "]}"
#define TRUE_(type)                                                                                          \
    "{'type':'" type "','status':'True','reason':'R','message':'m','lastTransitionTime':'2026-01-01T00:00:"  \
    "00Z'}"
#define RESERVED TRUE_("QuotaReserved") "," TRUE_("Admitted")
#define ADMISSION(members)                                                                                   \
    "'status':{'conditions':[" RESERVED "],'admission':{'clusterQueue':'cq','podSetAssignments':[" members   \
    "]}}"

/* `many` stands for '#' in `members`, repeated, with commas between; "%d" in it is the number. */
struct shape {
    const char *name, *members, *many;
    int times;
};

static const struct shape SHAPES[] = {
    {"nothing", "'spec':{}", NULL, 0},
    {"spec is a list", "'spec':[1,2,3]", NULL, 0},
    {"spec is a text", "'spec':'x','status':'y'", NULL, 0},
    {"podSets is an object", "'spec':{'podSets':{'name':'node','count':2}}", NULL, 0},
    {"podSets of numbers", "'spec':{'podSets':[#]}", "%d", 2000},
    {"podSets without end", "'spec':{'podSets':[#]}", "{'name':'s%d','count':1," TEMPLATE("") "}", 2000},
    {"no template", SETS("'count':2,'template':null"), NULL, 0},
    {"template is a text", SETS("'count':2,'template':'x'"), NULL, 0},
    {"count: the largest", SETS("'count':9223372036854775807,'minCount':9223372036854775807," TEMPLATE("")),
     NULL, 0},
    {"count: beyond", SETS("'count':1e308,'minCount':-1e308," TEMPLATE("")), NULL, 0},
    {"count: negative", SETS("'count':-2147483649," TEMPLATE("")), NULL, 0},
    {"count: a text", SETS("'count':'2','minCount':{}," TEMPLATE("")), NULL, 0},
    {"containers: a number", SETS("'count':1," TEMPLATE("'containers':7,'initContainers':'x'")), NULL, 0},
    {"containers without end", SETS("'count':1," TEMPLATE("'containers':[#]")), "{'name':'c%d'}", 1500},
    {"limits without end", CONTAINER("'resources':{'limits':{#}}"), "'r%d':'1'", 1500},
    {"quantities",
     CONTAINER("'resources':{'limits':{'a':'1e999','b':'-1','c':'Ei','d':1e308,'e':null,'f':[],'g':'nan'"
               ",'h':'0x10','i':'999999999999999999999999999999E'}}"),
     NULL, 0},
    {"a long quantity", CONTAINER("'resources':{'limits':{'a':'#'}}"), "1", 300000},
    {"tolerations without end", SETS("'count':1," TEMPLATE("'tolerations':[#]")), "{'key':'k%d'}", 1500},
    {"a selector without end", SETS("'count':1," TEMPLATE("'nodeSelector':{#}")), "'k%d':'v'", 1500},
    {"a queue without end", "'spec':{'queueName':'#'}", "q", 500000},
    {"priority: the largest",
     "'spec':{'priority':9223372036854775807,'priorityClassRef':{'group':7,'name':[]}}", NULL, 0},
    {"priority: a text",
     "'spec':{'priority':'high','priorityClassRef':'high','maximumExecutionTimeSeconds':-1}", NULL, 0},
    {"a class without end",
     "'spec':{'priorityClassRef':{'group':'kueue.x-k8s.io','kind':'WorkloadPriorityClass','name':'#'}}", "n",
     500000},
    {"conditions without end", CONDITIONS("#"), TRUE_("T%d"), 2000},
    {"conditions again and again", CONDITIONS("#"), TRUE_("Evicted") "," TRUE_("Finished"), 2000},
    {"a condition without end",
     "'status':{'conditions':[{'type':'QuotaReserved','status':'False','reason':'#','message':'#'}]}", "m",
     400000},
    {"conditions of numbers", CONDITIONS("1,2,null,'x',[],{},{'type':7,'status':8}"), NULL, 0},
    {"every condition",
     CONDITIONS(TRUE_("QuotaReserved") "," TRUE_("Admitted") "," TRUE_("Evicted") "," TRUE_(
         "Finished") "," TRUE_("PodsReady")),
     NULL, 0},
    {"evicted", ADMISSION("{'name':'node','count':2}"), NULL, 0},
    {"evicted, without an admission", CONDITIONS(RESERVED "," TRUE_("Evicted")), NULL, 0},
    {"assignments without end", ADMISSION("#"), "{'name':'s%d','count':1,'flavors':{'cpu':'gpu'}}", 2000},
    {"an assignment without end", ADMISSION("{'name':'node','count':1,'flavors':{#}}"), "'f%d':'gpu'", 1500},
    {"assignments of numbers",
     ADMISSION("1,'x',null,{'name':7,'count':'x','flavors':[1],'topologyAssignment':{}}"), NULL, 0},
    {"an admission is a text", "'status':{'conditions':[" RESERVED "],'admission':'all'}", NULL, 0},
    {"checks without end",
     "'status':{'conditions':[" RESERVED
     "],'admissionChecks':[#],'admission':{'podSetAssignments':[{'name':'node','count':1}]}}",
     "{'name':'c%d','podSetUpdates':[{'name':'node','nodeSelector':{'k%d':'v'},'tolerations':[7]}]}", 2000},
    {"requeued in another age", "'status':{'requeueState':{'requeueAt':'9999-12-31T23:59:59Z','count':-1}}",
     NULL, 0},
    {"requeued at no time",
     "'status':{'requeueState':{'requeueAt':'soon'},'accumulatedPastExecutionTimeSeconds':1e308}", NULL, 0},
    {"gates without end", "'metadata':{'annotations':{'" ANNOTATION_QUEUE_GATE "':'#'}},'spec':{}", "a/b",
     50000},
    {"a gate of commas", "'metadata':{'annotations':{'" ANNOTATION_QUEUE_GATE "':'#'}},'spec':{}", " ", 900},
    {"annotations without end", "'metadata':{'annotations':{#}},'spec':{}", "'k%d':'v'", 1500},
    {"a large annotation", "'metadata':{'annotations':{'a':'#'}},'spec':{}", "x", 1000000},
    {"finalizers without end", "'metadata':{'finalizers':[#]},'spec':{}", "'a.b/%d'", 1500},
    {"more owners than one", "'metadata':{'ownerReferences':[#]}",
     "{'apiVersion':'" TRAINJOB_API_VERSION "','kind':'" TRAINJOB_KIND
     "','name':'j','uid':'u%d','controller':true}",
     2000},
    {"owners of numbers", "'metadata':{'ownerReferences':[1,'x',{'uid':7,'controller':'true'}]}", NULL, 0},
};

static void write_many(const struct shape *s, char *out)
{
    size_t len = 0;
    const bool text = s->many[0] != '\'' && s->many[0] != '{' && s->many[0] != '%';

    for (int i = 0; i < s->times; i++) {
        assert_true(len + 512 < TEXT_BYTES);
        if (i && !text)
            out[len++] = ',';
        for (const char *c = s->many; *c; c++)
            if (c[0] == '%' && c[1] == 'd')
                len += (size_t)sprintf(out + len, "%d", i), c++;
            else
                out[len++] = *c;
    }
    out[len] = '\0';
}

/* The members of the shape, '#' replaced. */
static const char *members_of(const struct shape *s)
{
    static char many[TEXT_BYTES], out[2 * TEXT_BYTES];
    size_t len = 0;

    many[0] = '\0';
    if (s->many)
        write_many(s, many);
    for (const char *c = s->members; *c; c++)
        if (*c == '#')
            len += (size_t)sprintf(out + len, "%s", many);
        else
            out[len++] = *c;
    out[len] = '\0';
    return out;
}

static char *uid_of(struct lab *l, const char *path, char out[static NAMES_MAX])
{
    cleanup_json cJSON *o = lab_get(l, path);

    snprintf(out, NAMES_MAX, "%s", json_meta(o, "uid"));
    return out;
}

/* A merge of the shape into a Workload with this controller and Kueue's finalizer. */
static void write_workload(struct lab *l, const char *name, const char *owner, const char *members)
{
    static char body[3 * TEXT_BYTES];
    char path[NAMES_MAX + 96];

    snprintf(path, sizeof(path), EVIL "/%s", name);
    snprintf(body, sizeof(body),
             "{'metadata':{'finalizers':['" WORKLOAD_FINALIZER
             "'],'ownerReferences':[{'apiVersion':'" TRAINJOB_API_VERSION "','kind':'" TRAINJOB_KIND
             "','name':'j','uid':'%s','controller':true}]}}",
             owner);
    lab_put(l, path, body);
    snprintf(body, sizeof(body), "{%s}", members);
    lab_put(l, path, body);
}

static struct lab *begin(void **state)
{
    struct lab *l = lab_begin(state, lab_well);

    lab_kueue_install(l);
    l->collects = true;
    l->bookmarks = true;
    l->queues.full = true;
    lab_put(l, LAB_JOB,
            "{'metadata':{'labels':{'" LABEL_QUEUE
            "':'team'}},'spec':{'replicaSpecs':[{'type':'node','replicas':2,'"
            "template':{'spec':{'containers':[{'name':'pytorch','image':'i'}]}}}]}}");
    LAB_UNTIL(l, lab_workload_is(l, "QuotaReserved", "False"));
    return l;
}

/* The victim's job is admitted, and ends as ever. */
static void prove(struct lab *l)
{
    char summary[256], pods[512];

    l->queues.full = false;
    int64_t began = l->offset_ms;
    LAB_UNTIL(l, lab_status_is(l, LAB_JOB, "phase", "Succeeded"));
    assert_in_range(l->offset_ms - began, 0, 30000);
    lab_pass_ms(l, 30000);
    int asked = lab_requests(l);
    lab_pass_ms(l, SETTLE_MS);
    asked = lab_requests(l) - asked;
    lab_summary(l, summary, sizeof(summary));
    assert_string_equal(summary, "Succeeded attempt=0 backoff=0 disruptions=0 failures=0 restarts=0");
    lab_pod_history(l, pods, sizeof(pods));
    assert_string_equal(strstr(pods, " j-"), " j-node-0/0 j-node-1/0"); /* after those of job e */
    assert_true(lab_workload_is(l, "Finished", "True"));
    assert_int_equal(fake_log_count(l->server, "POST", LAB_WORKLOADS), 1);
    if (asked > SETTLE_MS / 1000) {
        lab_explain(l);
        fail_msg("%d requests in ten minutes", asked);
    }
}

static const char *only;

static void test_workloads(void **state)
{
    char victim[NAMES_MAX], evil[NAMES_MAX], name[NAMES_MAX];
    int n = 0;

    for (size_t i = 0; i < ARRAY_LEN(SHAPES); i++) {
        if (only && strcmp(only, SHAPES[i].name) != 0)
            continue;
        struct lab *l = begin(state);
        const char *members = members_of(&SHAPES[i]);
        print_message("%s\n", SHAPES[i].name);
        lab_put_job(l, "evil", "e",
                    "{'metadata':{'labels':{'" LABEL_QUEUE
                    "':'q'}},'spec':{'replicaSpecs':[{'type':'node','template':{'spec':{'containers':[{'name'"
                    ":'c','image':'i'}]}}}]}}");
        (void)uid_of(l, LAB_JOB, victim);
        (void)uid_of(l, EVIL_JOB, evil);
        snprintf(name, sizeof(name), "pytorchtrainingjob-e-%.8s", evil);
        LAB_UNTIL(l, fake_count(l->server, EVIL) == 1);
        write_workload(l, "of-the-other", victim, members);
        write_workload(l, "of-none", "no-such-job", members);
        write_workload(l, name, evil, members);
        snprintf(name, sizeof(name), "pytorchtrainingjob-j-%.8s", victim);
        write_workload(l, name, victim, members);
        prove(l);
        (void)lab_end(state);
        n++;
    }
    faults_report("F14", n, n);
}

/* Of the tenant's own jobs. */
static void test_labels(void **state)
{
    static const char *const META[] = {
        "'labels':{'" LABEL_QUEUE "':''}",
        "'labels':{'" LABEL_QUEUE "':'-','" LABEL_QUEUE_PRIORITY "':'nowhere'}",
        "'labels':{'" LABEL_QUEUE "':'q','" LABEL_QUEUE_MAX_TIME "':'99999999999999999999'}",
        "'labels':{'" LABEL_QUEUE "':'q','" LABEL_QUEUE_MAX_TIME "':'-1'}",
        "'labels':{'" LABEL_QUEUE "':'q','" LABEL_QUEUE_MAX_TIME "':'1e9'}",
        "'labels':{'" LABEL_QUEUE "':7,'" LABEL_QUEUE_PRIORITY "':[]}",
        "'labels':'" LABEL_QUEUE "'",
        "'labels':{'" LABEL_QUEUE "':'q'},'annotations':{'" ANNOTATION_QUEUE_GATE "':'#'}",
        "'labels':{'" LABEL_QUEUE "':'#'}",
        "'labels':{'" LABEL_QUEUE "':'q','" LABEL_QUEUE_PRIORITY "':'#'}",
    };
    static char body[2 * TEXT_BYTES];
    int n = 0;

    for (size_t i = 0; i < ARRAY_LEN(META) && !only; i++) {
        const struct shape s = {NULL, META[i], "a/b,", 1500};
        struct lab *l = begin(state);
        snprintf(body, sizeof(body),
                 "{'metadata':{%s},'spec':{'replicaSpecs':[{'type':'node','replicas':2,'template':{'spec':{'"
                 "containers':[{'name':'c','image':'i'}]}}}]}}",
                 members_of(&s));
        lab_put_job(l, "evil", "e", body);
        lab_pass_ms(l, 10000);
        prove(l);
        (void)lab_end(state);
        n++;
    }
    faults_report("F14", n, n);
}

/* Hundreds that name the other tenant's job, or none, each with an eviction to act on. */
static void test_crowd(void **state)
{
    char victim[NAMES_MAX], name[NAMES_MAX];

    if (only)
        skip();
    struct lab *l = begin(state);
    (void)uid_of(l, LAB_JOB, victim);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "w-%d", i);
        write_workload(l, name, i % 2 ? victim : "no-such-job",
                       "'spec':{}," CONDITIONS(RESERVED "," TRUE_("Evicted")));
    }
    prove(l);
    assert_int_equal(fake_count(l->server, EVIL), MANY / 2); /* what names no job is removed */
    (void)lab_end(state);
    faults_report("F14", 1, 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workloads),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_crowd),
    };

    only = argc > 1 ? argv[1] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
