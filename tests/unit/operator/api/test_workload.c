/* test_workload.c - what is read of a Workload and of a flavour, the limits of it, and the changes of a whole Workload. */
#include "operator/api/workload.h"

#include "common/clock.h"
#include "jsontext.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define META                                                                                                 \
    "'metadata':{'name':'w','namespace':'ns','uid':'u','resourceVersion':'7','generation':3,'finalizers':['" \
    "other','" WORKLOAD_FINALIZER "']}"

static const cJSON *get(const cJSON *o, const char *a, const char *b)
{
    return json_find(o, (const char *[]){a, b, NULL});
}

/* The stage of tests/golden/kueue that a real Kueue wrote. */
static cJSON *stage(const char *name)
{
    static char text[1 << 18];
    FILE *f = fopen(TK_SOURCE_DIR "/tests/golden/kueue/stages.json", "r");
    struct err err;

    assert_non_null(f);
    while (fgets(text, sizeof(text), f)) {
        cleanup_json cJSON *o = json_parse(text, strlen(text), &err);
        if (strcmp(json_str(o, "stage"), name) != 0)
            continue;
        fclose(f);
        return cJSON_DetachItemFromObjectCaseSensitive(o, "object");
    }
    fail_msg("no stage %s", name);
    return NULL;
}

static struct workload *decode(const char *members)
{
    char text[1024];
    struct err err;

    snprintf(text, sizeof(text), "{" META "%s}", members);
    cleanup_json cJSON *o = jsontext_parse(text);
    struct workload *w = workload_decode(o, NULL, &err);
    if (!w)
        fail_msg("%s", err.msg);
    return w;
}

/* Ours is what jobframework wrote in that stage, and PodsReady, which that left as it was. */
static void test_release(void **state)
{
    static const char *const TYPES[] = {"QuotaReserved", "Admitted", "Requeued", "Evicted", "Preempted"};
    cleanup_json cJSON *got = stage("04-low-evicted-holds-quota"), *want = stage("06-low-released");
    const cJSON *have = get(got, "status", "conditions");
    int64_t now_ms;

    (void)state;
    assert_true(clock_parse_rfc3339("2026-11-25T19:32:28Z", &now_ms));
    assert_true(workload_release(got, now_ms));
    assert_null(get(got, "status", "admission"));
    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++)
        if (!cJSON_Compare(json_item_with(have, "type", TYPES[i]),
                           json_item_with(get(want, "status", "conditions"), "type", TYPES[i]), true))
            fail_msg("%s is another one", TYPES[i]);
    assert_string_equal(json_str(json_item_with(have, "type", "PodsReady"), "reason"), "WaitForStart");
    assert_int_equal(json_i64(get(got, "status", NULL), "accumulatedPastExecutionTimeSeconds", 0), 29);
    assert_true(
        cJSON_Compare(get(got, "status", "schedulingStats"), get(want, "status", "schedulingStats"), true));
    assert_false(workload_release(got, now_ms)); /* once */
    cleanup_json cJSON *stopped = stage("14-localqueue-stopped"), *admitted = stage("02-admitted");
    assert_true(workload_release(stopped, now_ms));
    assert_string_equal(
        json_str(json_item_with(get(stopped, "status", "conditions"), "type", "Requeued"), "status"),
        "False");
    assert_false(workload_release(admitted, now_ms));
}

static void test_spec(void **state)
{
    cleanup_json cJSON *o = jsontext_parse(
        "{" META ",'spec':{'queueName':'a','priorityClassRef':{'name':'x'},'podSets':[{'name':'n',"
        "'count':4,'minCount':2,'template':{'spec':{}}}]}}");
    cleanup_json cJSON *less =
        jsontext_parse("{'spec':{'podSets':[{'count':3,'minCount':null}],'priorityClassRef':null}}");
    cleanup_json cJSON *other =
        jsontext_parse("{'spec':{'queueName':'b','podSets':[{'name':'m','count':1,'template':{}}]}}");
    const cJSON *sets = get(o, "spec", "podSets");

    (void)state;
    assert_true(workload_set_spec(o, less));
    assert_int_equal(json_i64(cJSON_GetArrayItem(sets, 0), "count", 0), 3);
    assert_non_null(json_child(cJSON_GetArrayItem(sets, 0), "template"));
    assert_null(json_child(cJSON_GetArrayItem(sets, 0), "minCount"));
    assert_null(get(o, "spec", "priorityClassRef"));
    assert_true(workload_set_spec(o, other));
    assert_string_equal(json_str(get(o, "spec", NULL), "queueName"), "b");
    assert_string_equal(json_str(cJSON_GetArrayItem(get(o, "spec", "podSets"), 0), "name"), "m");
}

static void content(const char *spec, const char *annotations, char out[static 17])
{
    char text[1024];

    snprintf(text, sizeof(text), "{'metadata':{'annotations':{%s}},'spec':{%s}}", annotations, spec);
    cleanup_json cJSON *template = jsontext_parse(text);
    workload_content(&(struct workload_podset){"n", template, 1, 0}, 1, out);
}

#define ONE(resources) "'containers':[{'name':'c','image':'i','resources':{'limits':{" resources "}}}]"

/* What Kueue decides from, and no defaults of a server. */
static void test_content(void **state)
{
    static const char *const SAME[] = {ONE("'cpu':'2'") ",'restartPolicy':'Never'", ONE("'cpu':2"),
                                       ONE("'cpu':'2'") ",'tolerations':[],'nodeSelector':null",
                                       "'initContainers':[],'containers':[{'name':'c','image':'other','ports'"
                                       ":[{'containerPort':1,'protocol':'TCP'}],'resources':"
                                       "{'limits':{'cpu':'2'},'requests':{}}}]"};
    static const char *const OTHERS[] = {ONE("'cpu':'3'"), ONE("'cpu':'2'") ",'nodeSelector':{'a':'b'}",
                                         ONE("'cpu':'2'") ",'tolerations':[{'key':'k'}]",
                                         ONE("'cpu':'2','m':1"), ONE("'cpu':'2'") ",'runtimeClassName':'r'"};
    char want[17], got[17];

    (void)state;
    content(ONE("'cpu':'2'"), "", want);
    for (size_t i = 0; i < ARRAY_LEN(SAME); i++) {
        content(SAME[i], "'x':'y'", got);
        assert_string_equal(got, want);
    }
    for (size_t i = 0; i < ARRAY_LEN(OTHERS); i++) {
        content(OTHERS[i], "", got);
        assert_string_not_equal(got, want);
    }
    content(ONE("'cpu':'2'"), "'" ANNOTATION_TOPOLOGY_REQUIRED "':'rack'", got);
    assert_string_not_equal(got, want);
    cleanup_json cJSON *q = jsontext_parse("{'cpu':0.5,'memory':'1Gi','gpu':8}");
    cleanup_json cJSON *texts = workload_quantities(q);
    assert_string_equal(json_str(texts, "cpu"), "0.5");
    assert_string_equal(json_str(texts, "gpu"), "8");
}

/* The API server drops null and unknown members of a Workload, and Kueue empty ones. */
static void test_content_pruned(void **state)
{
    static const char *const SAME[] = {
        ",'tolerations':[{'key':'k','operator':'Exists','value':null}],'nodeSelector':{'a':'b','c':null}",
        ",'tolerations':[{'key':'k','operator':'Exists','value':'','mine':1}],'nodeSelector':{'a':'b'},"
        "'runtimeClassName':''"};
    static const char *const OTHERS[] = {
        ",'tolerations':[{'key':'k','operator':'Exists','effect':'NoSchedule'}],'nodeSelector':{'a':'b'}",
        ",'tolerations':[{'key':'k','operator':'Exists','tolerationSeconds':0}],'nodeSelector':{'a':'b'}",
        ",'tolerations':[{'key':'k','operator':'Exists'}],'nodeSelector':{'a':''}"};
    char want[17], got[17], text[256];

    (void)state;
    content(ONE("'cpu':2") ",'tolerations':[{'key':'k','operator':'Exists'}],'nodeSelector':{'a':'b'}", "",
            want);
    for (size_t i = 0; i < ARRAY_LEN(SAME); i++) {
        snprintf(text, sizeof(text), "%s%s", ONE("'cpu':2"), SAME[i]);
        content(text, "'" ANNOTATION_TOPOLOGY_REQUIRED "':null", got);
        assert_string_equal(got, want);
    }
    for (size_t i = 0; i < ARRAY_LEN(OTHERS); i++) {
        snprintf(text, sizeof(text), "%s%s", ONE("'cpu':2"), OTHERS[i]);
        content(text, "", got);
        assert_string_not_equal(got, want);
    }
}

/* Kueue writes quantities in its own way. */
static void test_content_amounts(void **state)
{
    static const char *const SAME[][2] = {
        {"'cpu':'1000m'", "'cpu':'1'"},          {"'cpu':0.5", "'cpu':'500m'"},
        {"'cpu':0.3", "'cpu':'300m'"},           {"'cpu':' 1e3'", "'cpu':'1k'"},
        {"'memory':'1024Mi'", "'memory':'1Gi'"}, {"'memory':'0.5Gi'", "'memory':536870912"}};
    char a[17], b[17];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(SAME); i++) {
        char text[2][128];
        for (int k = 0; k < 2; k++)
            snprintf(text[k], sizeof(text[k]),
                     "'overhead':{%s},'containers':[{'resources':{'requests':{%s}}}]", SAME[i][k],
                     SAME[i][k]);
        content(text[0], "", a);
        content(text[1], "", b);
        assert_string_equal(a, b);
    }
    content(ONE("'memory':'1Gi'"), "", a);
    content(ONE("'memory':'1073741825'"), "", b);
    assert_string_not_equal(a, b);
}

static void test_limits(void **state)
{
    char big[WORKLOAD_ADMISSION_BYTES + 200];
    struct err err;

    (void)state;
    struct workload *w = decode(
        ",'spec':{'podSets':[{'name':'a','count':2},{'name':'b','count':4,'minCount':1}],'queueName':7},"
        "'status':{'admission':7,'conditions':[{'type':'Admitted','status':'True'}]}");
    assert_string_equal(w->sizes, "2,4/1");
    assert_string_equal(w->queue, "");
    assert_true(workload_is(w, WORKLOAD_ADMITTED) && !w->has_admission && w->finalizer);
    assert_string_equal(w->other_finalizers, "[\"other\"]");
    free(w);
    /* More of them than can be written back: they stay, and so does ours. */
    snprintf(big, sizeof(big),
             "{'metadata':{'name':'w','namespace':'ns','uid':'u','resourceVersion':'7','finalizers':["
             "'" WORKLOAD_FINALIZER "','%0*d']}}",
             WORKLOAD_FINALIZERS_BYTES, 0);
    cleanup_json cJSON *many = jsontext_parse(big);
    w = workload_decode(many, NULL, &err);
    assert_true(w && !w->finalizer);
    free(w);
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    cleanup_json cJSON *o = jsontext_parse(
        "{" META ",'status':{'admission':{'podSetAssignments':[{'name':'n'}]},'conditions':[{'type':"
        "'QuotaReserved','status':'False'}],'admissionChecks':[{'podSetUpdates':[{'name':'n',"
        "'labels':{}}]}]}}");
    cJSON *c = json_item_with(get(o, "status", "conditions"), "type", "QuotaReserved");
    cJSON_AddStringToObject(c, "message", big);
    cJSON_AddStringToObject(c, "reason", big);
    w = workload_decode(o, NULL, &err);
    assert_int_equal(strlen(w->conditions[WORKLOAD_QUOTA_RESERVED].message), WORKLOAD_MESSAGE_BYTES);
    assert_string_equal(w->conditions[WORKLOAD_QUOTA_RESERVED].reason, "");
    free(w);
    const cJSON *update = cJSON_GetArrayItem(
        json_child(cJSON_GetArrayItem(get(o, "status", "admissionChecks"), 0), "podSetUpdates"), 0);
    cJSON_AddStringToObject((cJSON *)(uintptr_t)get(update, "labels", NULL), "a", big);
    assert_null(workload_decode(o, NULL, &err));
    assert_string_equal(err.msg, "Workload: status.admission: over 65536 bytes of JSON");
    w = workload_decode(o, &err, &err);
    assert_string_equal(w->unreadable, "Workload: status.admission: over 65536 bytes of JSON");
    free(w);
    cleanup_json cJSON *flavor = jsontext_parse(
        "{'metadata':{'name':'f','uid':'u'},'spec':{'nodeLabels':{'a':'b'},'tolerations':[{}]}}");
    cJSON_AddStringToObject((cJSON *)(uintptr_t)get(flavor, "spec", "nodeLabels"), "c", big);
    struct queue_setting *s = queue_setting_decode(flavor, &err);
    assert_string_equal(s->unreadable, "spec.nodeLabels: over 16384 bytes of JSON");
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_release),         cmocka_unit_test(test_spec),
        cmocka_unit_test(test_content),         cmocka_unit_test(test_content_pruned),
        cmocka_unit_test(test_content_amounts), cmocka_unit_test(test_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
