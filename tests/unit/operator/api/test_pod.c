/* test_pod.c - pods cut down to what plan reads. */
#include "common/heapsize.h"
#include "common/text.h"
#include "jsontext.h"
#include "operator/api/pod.h"
#include "operator/api/trainjob.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

#define META                                                                                                 \
    "'metadata':{'name':'p','namespace':'n','uid':'u','labels':{'batch.tensorstack.dev/"                     \
    "attempt':'2','batch.tensorstack.dev/replica-index':'1','batch.tensorstack.dev/"                         \
    "replica-type':'node'},'ownerReferences':[{'uid':'not'},{'apiVersion':'" TRAINJOB_API_VERSION            \
    "','kind':'" TRAINJOB_KIND "','uid':'job','controller':true}]}"

static struct pod *decode(const char *text, struct err *err)
{
    cleanup_json cJSON *j = jsontext_parse(text);

    return pod_decode(j, NULL, err);
}

/* Of a text that makes a pod. */
static struct pod *pod_of(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static struct pod *pod_of(const char *fmt, ...)
{
    char text[8192];
    struct err err;
    va_list ap;

    va_start(ap, fmt);
    assert_in_range(vsnprintf(text, sizeof(text), fmt, ap), 1, sizeof(text) - 1);
    va_end(ap);
    struct pod *p = decode(text, &err);
    assert_non_null(p);
    return p;
}

/* Pods as a mesh leaves them: a template of two containers, and a proxy that something put in front, between, behind or among the
 * init containers. Which container trains says the annotation, where it names one; its status is found in any order. */
enum { PROXY_NATIVE = 3, ORDERS = 6 };

/* The containers of the pod have ended with 7, 8 and 9, but for the one without a status. */
static void check_meshed(const char *const names[3], int place, const char *annotation, int order,
                         int missing)
{
    char containers[256] = "", statuses[512] = "";
    bool native = place == PROXY_NATIVE;
    int want = place == 0 && strcmp(names[0], "pytorch") != 0 ? 2 : 0; /* without an annotation */

    for (int i = 0; i < 3; i++) {
        int n = order % 2 ? (order / 2 + 2 * i) % 3 : (order / 2 + i) % 3;
        if (i == place)
            text_add(containers, sizeof(containers), "%s{'name':'%s'}", i ? "," : "", names[2]);
        if (i < 2)
            text_add(containers, sizeof(containers), "%s{'name':'%s'}", *containers ? "," : "", names[i]);
        if (n != missing)
            text_add(statuses, sizeof(statuses), "%s{'name':'%s','state':{'terminated':{'exitCode':%d}}}",
                     *statuses ? "," : "", names[n], 7 + n);
        if (annotation && (i < 2 || !native) && strlen(annotation) == strlen(names[i]) + 2 &&
            strstr(annotation, names[i]))
            want = i;
    }
    struct pod *p =
        pod_of("{'metadata':{'name':'p','namespace':'n','uid':'u'%s%s%s},'spec':{%s'containers':[%s]},"
               "'status':{'phase':'Running','containerStatuses':[%s]}}",
               annotation ? ",'annotations':{'" ANNOTATION_TRAINING_CONTAINER "':" : "",
               annotation ? annotation : "", annotation ? "}" : "",
               native ? "'initContainers':[{'name':'mesh-proxy'}]," : "", containers, statuses);
    if (strcmp(p->training.name, names[want]) != 0 ||
        p->training.state != (want == missing ? CONTAINER_NONE : CONTAINER_TERMINATED) ||
        p->training.exit_code != (want == missing ? 0 : 7 + want) || pod_ended(p) != (want != missing))
        fail_msg("proxy at %d, annotation %s, order %d, %d without a status: %s, state %d, code %d", place,
                 annotation ? annotation : "none", order, missing, p->training.name, (int)p->training.state,
                 p->training.exit_code);
    free(p);
}

static void test_proxy_anywhere(void **state)
{
    static const char *const NAMES[][3] = {{"trainer", "shipper", "mesh-proxy"},
                                           {"pytorch", "shipper", "mesh-proxy"}};
    static const char *const ANNOTATIONS[] = {NULL,           "'trainer'",   "'pytorch'", "'shipper'",
                                              "'mesh-proxy'", "'trainer-2'", "''",        "7",
                                              "null",         "['trainer']"};

    (void)state;
    for (size_t n = 0; n < ARRAY_LEN(NAMES); n++)
        for (int place = 0; place <= PROXY_NATIVE; place++)
            for (size_t a = 0; a < ARRAY_LEN(ANNOTATIONS); a++)
                for (int order = 0; order < ORDERS; order++)
                    for (int missing = -1; missing < 3; missing++)
                        check_meshed(NAMES[n], place, ANNOTATIONS[a], order, missing);
}

/* What still works in a pod whose training has ended, and its deadline. */
static void test_working_beside(void **state)
{
#define BESIDE(phase, train, more)                                                                           \
    "'status':{'phase':'" phase                                                                              \
    "','containerStatuses':[{'name':'a','state':{'running':{}}},{'name':'pytorch','state':{" train "}}" more \
    "]}"
#define OVER "'terminated':{'exitCode':1}"
    static const struct {
        const char *spec, *status, *working;
        int deadline_s;
    } ROWS[] = {
        {"", BESIDE("Running", OVER, ""), "a", 0},
        {"'activeDeadlineSeconds':3600,", BESIDE("Running", OVER, ""), "a", 3600},
        {"'activeDeadlineSeconds':2147483648,", BESIDE("Running", OVER, ""), "a", 0},
        {"'activeDeadlineSeconds':'7',", BESIDE("Running", OVER, ""), "a", 0},
        {"", BESIDE("Running", "'running':{}", ""), "", 0},
        {"", BESIDE("Failed", OVER, ""), "", 0},
        {"", BESIDE("Succeeded", OVER, ""), "", 0},
        {"", BESIDE("Pending", OVER, ",{'name':'b','state':{'waiting':{'reason':'ErrImagePull'}}}"), "a, b",
         0},
        {"", BESIDE("Running", OVER, ",{'name':'b','state':{'terminated':{'exitCode':0}}},{'name':'c'}"),
         "a, c", 0},
        {"", "'status':{'phase':'Running','containerStatuses':[{'name':'pytorch','state':{" OVER "}}]}", "",
         0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct pod *p = pod_of("{" META ",'spec':{%s'containers':[{'name':'pytorch'}]},%s}", ROWS[i].spec,
                               ROWS[i].status);
        if (strcmp(p->working, ROWS[i].working) != 0 || p->deadline_s != ROWS[i].deadline_s)
            fail_msg("row %zu: \"%s\" work, deadline %d", i, p->working, (int)p->deadline_s);
        free(p);
    }
}

static void test_address(void **state)
{
    static const struct {
        const char *spec, *status, *ip;
        bool host_network;
    } ROWS[] = {
        {"{}", "{'podIP':'10.1.2.3','podIPs':[{'ip':'fd00::1'}]}", "10.1.2.3", false},
        {"{'hostNetwork':true}", "{'podIP':'10.1.2.3'}", "10.1.2.3", true},
        {"{'hostNetwork':'true'}", "{}", "", false},
        {"{}", "{'podIP':'ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255'}",
         "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", false},
        {"{}", "{'podIP':'ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.2555'}", "", false},
        {"{}", "{'podIP':7}", "", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct pod *p = pod_of("{" META ",'spec':%s,'status':%s}", ROWS[i].spec, ROWS[i].status);
        assert_string_equal(p->ip, ROWS[i].ip);
        assert_int_equal(p->host_network, ROWS[i].host_network);
        free(p);
    }
}

/* The attempt after the label's must still be a number; an index is a place in a job, and beyond all places it is none. */
static void test_numbers_in_labels(void **state)
{
    static const struct {
        const char *label, *text;
        int32_t attempt, index;
    } ROWS[] = {
        {LABEL_ATTEMPT, "0", 0, -1},           {LABEL_ATTEMPT, "1073741823", 1073741823, -1},
        {LABEL_ATTEMPT, "1073741824", -1, -1}, {LABEL_ATTEMPT, "2147483647", -1, -1},
        {LABEL_ATTEMPT, "-1", -1, -1},         {LABEL_INDEX, "0", -1, 0},
        {LABEL_INDEX, "1023", -1, 1023},       {LABEL_INDEX, "1024", -1, -1},
        {LABEL_INDEX, "2147483647", -1, -1},   {LABEL_INDEX, "x", -1, -1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct pod *p = pod_of("{'metadata':{'name':'p','namespace':'n','uid':'u','labels':{'%s':'%s'}}}",
                               ROWS[i].label, ROWS[i].text);
        assert_int_equal(p->attempt, ROWS[i].attempt);
        assert_int_equal(p->index, ROWS[i].index);
        free(p);
    }
}

static void test_bare(void **state)
{
    struct err err;
    struct pod *p = decode("{'metadata':{'name':'p','namespace':'n','uid':'u'}}", &err);

    (void)state;
    assert_non_null(p);
    assert_string_equal(p->owner_uid, "");
    assert_int_equal(p->attempt, -1);
    assert_int_equal(p->phase, POD_PENDING);
    assert_false(pod_ended(p));
    free(p);
    assert_null(decode("{'metadata':{'name':'p','namespace':'n'}}", &err));
    assert_int_equal(err.kind, ERR_INVALID);
    assert_null(decode("[]", &err));
    assert_null(decode("{'metadata':[1,2]}", &err));
}

static void test_deletion(void **state)
{
    static const struct {
        const char *grace;
        bool forced;
    } ROWS[] = {
        {"", false}, {",'deletionGracePeriodSeconds':30", false}, {",'deletionGracePeriodSeconds':0", true}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct pod *p = pod_of("{'metadata':{'name':'p','namespace':'n','uid':'u','creationTimestamp':'1970-"
                               "01-01T00:00:05Z','deletionTimestamp':'1970-01-01T00:00:07Z'%s}}",
                               ROWS[i].grace);
        assert_int_equal(p->created_ms, 5000);
        assert_int_equal(p->deletion_ms, 7000);
        assert_int_equal(p->forced, ROWS[i].forced);
        free(p);
    }
}

static void test_long_message_keeps_its_end(void **state)
{
    char text[8192];
    struct err err;
    int n =
        snprintf(text, sizeof(text),
                 "{" META ",'spec':{'containers':[{'name':'a'}]},'status':{'containerStatuses':[{'name':'a','"
                 "state':{'terminated':{'exitCode':1,'message':'%05000d exitcode : -9'}}}]}}",
                 0);

    (void)state;
    assert_true(n > 5000 && n < (int)sizeof(text));
    struct pod *p = decode(text, &err);
    assert_non_null(p);
    assert_int_equal(strlen(p->training.message), 2048);
    assert_non_null(strstr(p->training.message, "exitcode : -9"));
    free(p);
}

/* Of an ended container, one between two runs and one that waits. Hidden before the message is cut: the name in front of a
 * secret may be cut away. */
static void test_secrets_in_messages(void **state)
{
    static const char *const STATES[] = {"'terminated':{'exitCode':1,", "'waiting':{"};
    char long_one[3000];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct pod *p = pod_of("{" META ",'spec':{'containers':[{'name':'c'}]},'status':{'phase':"
                               "'Pending','containerStatuses':[{'name':'c','state':{%s"
                               "'message':'GET https://me:pw@h/ with token=abcdefgh1'}}}]}}",
                               STATES[i]);
        assert_string_equal(p->training.message, "GET https://***@h/ with token=***");
        free(p);
    }
    memset(long_one, 'a', sizeof(long_one) - 1);
    long_one[sizeof(long_one) - 1] = '\0';
    memcpy(long_one + 100, " password=", 10); /* its value is longer than what is kept */
    memcpy(long_one + sizeof(long_one) - 6, " end", 4);
    for (int i = 0; i < 2; i++) {
        struct pod *p = pod_of("{" META ",'spec':{'containers':[{'name':'c'}]},'status':{'phase':'Failed',"
                               "'containerStatuses':[{'name':'c','state':{%s'message':'%s'}}}]}}",
                               STATES[i], long_one);
        assert_non_null(strstr(p->training.message, "password=*** end"));
        assert_in_range(strlen(p->training.message), 1, 2048);
        free(p);
    }
}

static void test_key_in_the_environment(void **state)
{
    static const char *const ENVS[] = {"", "{'name':'A'}", "{'name':'A'},{'name':'TORCHKEEPER_JOB_KEY'}"};

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct pod *p = pod_of("{" META ",'spec':{'containers':[{'name':'side','env':[{'name':"
                               "'TORCHKEEPER_JOB_KEY'}]},{'name':'python','env':[%s]}]}}",
                               ENVS[i]);
        assert_int_equal(p->keyed, i == 2);
        free(p);
    }
}

/* How the pod's init containers are, and which of them shows why the pod failed or waits. */
static void test_init_containers(void **state)
{
#define ENDED(name, code) "{'name':'" name "','state':{'terminated':{'exitCode':" code "}}}"
#define WAITS(name, why) "{'name':'" name "','state':{'waiting':{'reason':'" why "'}}}"
#define RUNS(name) "{'name':'" name "','state':{'running':{}}}"
    static const struct {
        const char *statuses, *name;
        enum container_state state;
    } ROWS[] = {
        {ENDED("a", "0") "," ENDED("b", "3"), "b", CONTAINER_TERMINATED},
        {ENDED("a", "2") "," WAITS("b", "PodInitializing"), "a", CONTAINER_TERMINATED},
        {ENDED("a", "0") "," WAITS("b", "ImagePullBackOff"), "b", CONTAINER_WAITING},
        {RUNS("side") "," ENDED("a", "0") "," ENDED("b", "0"), "", CONTAINER_NONE},
        {WAITS("side", "CrashLoopBackOff") "," ENDED("a", "3"), "a", CONTAINER_TERMINATED},
        {ENDED("side", "137") "," ENDED("a", "3"), "a", CONTAINER_TERMINATED}, /* killed because a failed */
        {ENDED("side", "137") "," ENDED("a", "0"), "", CONTAINER_NONE},
        {WAITS("side", "ErrImagePull") "," WAITS("a", "PodInitializing"), "side", CONTAINER_WAITING},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct pod *p = pod_of(
            "{" META
            ",'spec':{'initContainers':[{'name':'side','restartPolicy':'Always'},{'name':'a'},{'name':'b'}],'"
            "containers':[{'name':'c'}]},'status':{'phase':'Failed','initContainerStatuses':[%s]}}",
            ROWS[i].statuses);
        assert_string_equal(p->init.name, ROWS[i].name);
        assert_int_equal(p->init.state, ROWS[i].state);
        free(p);
    }
}

/* A container beside the training shows why the pod is not ready, once the training runs and while it cannot start. */
static void test_beside(void **state)
{
    static const struct {
        const char *statuses, *init, *name;
    } ROWS[] = {
        {RUNS("c") "," WAITS("s", "ErrImagePull"), "", "s"},
        {WAITS("s", "ErrImagePull") "," RUNS("c"), "", "s"},
        {WAITS("a", "ContainerCreating") "," RUNS("c") "," WAITS("s", "ErrImagePull"), "", "s"},
        {WAITS("s", "ContainerCreating") "," RUNS("c"), "", "s"},
        {RUNS("c") "," WAITS("s", "ErrImagePull") "," WAITS("t", "ContainerCreating"), "", "s"},
        {WAITS("s", "ErrImagePull") "," WAITS("c", "ErrImagePull"), "", ""},
        {WAITS("s", "ErrImagePull"), "", ""},
        {ENDED("c", "0") "," WAITS("s", "ErrImagePull"), "", ""},
        {RUNS("c") "," ENDED("s", "1"), "", ""},
        {RUNS("c") "," WAITS("s", "ErrImagePull"), WAITS("i", "CrashLoopBackOff"), "s"}, /* i runs beside c */
        {RUNS("c"), WAITS("i", "CrashLoopBackOff"), ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct pod *p = pod_of("{" META ",'spec':{'containers':[{'name':'c'},{'name':'s'}]},'status':{'phase'"
                               ":'Pending','containerStatuses':[%s],'initContainerStatuses':[%s]}}",
                               ROWS[i].statuses, ROWS[i].init);
        assert_string_equal(p->init.name, ROWS[i].name);
        assert_int_equal(p->beside, ROWS[i].name[0] == 's');
        free(p);
    }
}

/* An end without a code that could be one is no end, and no success. */
static void test_exit_codes(void **state)
{
    static const struct {
        const char *code;
        enum container_state state;
        int32_t want;
    } ROWS[] = {{"0", CONTAINER_TERMINATED, 0},
                {"255", CONTAINER_TERMINATED, 255},
                {"-1", CONTAINER_TERMINATED, -1},
                {"-2147483648", CONTAINER_TERMINATED, INT32_MIN},
                {"2147483647", CONTAINER_TERMINATED, INT32_MAX},
                {"2147483648", CONTAINER_NONE, 0},
                {"4294967296", CONTAINER_NONE, 0},
                {"'0'", CONTAINER_NONE, 0},
                {"null", CONTAINER_NONE, 0}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct pod *p = pod_of("{" META ",'spec':{'containers':[{'name':'c'}]},'status':{'containerStatuses':"
                               "[{'name':'c','state':{'terminated':{'exitCode':%s}}}]}}",
                               ROWS[i].code);
        assert_int_equal(p->training.state, ROWS[i].state);
        assert_int_equal(p->training.exit_code, ROWS[i].want);
        free(p);
    }
}

static void test_conditions(void **state)
{
#define CONDITION(type, status, reason)                                                                      \
    "{'type':'" type "','status':'" status "','reason':'" reason "','message':'m'}"
    static const struct {
        const char *conditions, *disruption, *unschedulable;
    } ROWS[] = {
        {"", "", ""},
        {CONDITION("Ready", "True", "") "," CONDITION("PodScheduled", "True", ""), "", ""},
        {CONDITION("DisruptionTarget", "True", "EvictionByEvictionAPI"), "EvictionByEvictionAPI", ""},
        {CONDITION("DisruptionTarget", "True", ""), "Disruption", ""},
        {CONDITION("DisruptionTarget", "False", "EvictionByEvictionAPI"), "", ""},
        {CONDITION("DisruptionTarget", "Unknown", "EvictionByEvictionAPI"), "", ""},
        {CONDITION("PodScheduled", "False", "Unschedulable"), "", "m"},
        {CONDITION("PodScheduled", "False", "SchedulingGated"), "", ""},
        {CONDITION("PodScheduled", "True", "Unschedulable"), "", ""},
        {CONDITION("Other", "False", "Unschedulable"), "", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct pod *p = pod_of("{" META ",'status':{'conditions':[%s]}}", ROWS[i].conditions);
        assert_string_equal(p->disruption, ROWS[i].disruption);
        assert_string_equal(p->disruption_msg, ROWS[i].disruption[0] ? "m" : "");
        assert_string_equal(p->unplaced_by, ROWS[i].unschedulable);
        free(p);
    }
}

/* All that can be there at once, each as long as it may be: what names the holder of a pod without a node takes the node's room. */
static void test_largest(void **state)
{
    static const struct {
        const char *path[4];
        int bytes;
    } NAMES[] = {{{"spec", "schedulerName"}, 100000},
                 {{"status", "podIP"}, 45},
                 {{"status", "reason"}, 128},
                 {{"status", "message"}, 100000}};
    static char text[100001];
    struct err err;
    char json[8192];

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    snprintf(json, sizeof(json),
             "{" META ",'spec':{'schedulingGates':[{'name':'%.253s'}],'resourceClaims':[{'name':'a','"
             "resourceClaimTemplateName':'%.253s'}],'containers':[{'name':'%.63s'}]},'status':{'"
             "initContainerStatuses':[{'name':'%.63s','state':{'terminated':{'exitCode':1,'reason':'"
             "%.128s','message':'%.2048s'}}}],'containerStatuses':[{'name':'%.63s','state':{'"
             "terminated':{'exitCode':1,'reason':'%.128s','message':'%.2048s'}}}],'conditions':[{'"
             "type':'DisruptionTarget','status':'True','reason':'%.128s','message':'%.512s'}]}}",
             text, text, text, text, text, text, text, text, text, text, text);
    cleanup_json cJSON *pod = jsontext_parse(json);
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        cJSON_AddStringToObject(cJSON_GetObjectItem(pod, NAMES[i].path[0]), NAMES[i].path[1],
                                text + 100000 - NAMES[i].bytes);
    cJSON *meta = cJSON_GetObjectItem(pod, "metadata");
    cJSON_AddStringToObject(meta, "resourceVersion", text + 100000 - 31);
    cJSON_AddItemToArray(cJSON_AddArrayToObject(meta, "finalizers"), cJSON_CreateString(text));
    struct pod *p = pod_decode(pod, NULL, &err);
    assert_non_null(p);
    assert_int_equal(strlen(p->unplaced_by), 253);
    assert_int_equal(strlen(p->init.message) + strlen(p->training.message), 4096);
    /* ns, name, uid, owner, type, hash are short here, the scheduler has no words and all was read: 63+253+64+64+63+63+259+240. */
    assert_in_range(heapsize(p), 5000, 8192 - 1069);
    free(p);
}

/* The format, each @ of which is the text; free. */
static char *filled(const char *format, const char *text)
{
    char *out = NULL;
    size_t size;
    FILE *f = open_memstream(&out, &size);

    for (; *format; format++)
        if (*format == '@')
            fputs(text, f);
        else
            fputc(*format, f);
    fclose(f);
    return out;
}

/* Nothing that others write makes a pod large: names of any length count as absent, messages are cut. */
static void test_every_string_is_bounded(void **state)
{
#define WORDS "'reason':'@','message':'@'"
#define CONTAINER "{'name':'@','state':{'terminated':{'exitCode':1," WORDS "}}}"
    static const char POD[] =
        "{'metadata':{'name':'p','namespace':'n','uid':'u','resourceVersion':'7','finalizers':['@'],'labels':"
        "{"
        "'" LABEL_TYPE "':'@','" LABEL_TEMPLATE_HASH
        "':'@'}},'spec':{'nodeName':'@','containers':[{'name':'@'}]},"
        "'status':{" WORDS ",'containerStatuses':[" CONTAINER "],'initContainerStatuses':[" CONTAINER
        "],'conditions':["
        "{'type':'DisruptionTarget','status':'True'," WORDS "},{'type':'PodScheduled','status':'False',"
        "'reason':'Unschedulable','message':'@'}]}}";
    static char text[100001];
    struct err err;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    for (int round = 0; round < 2; round++) {
        cleanup_free char *json = filled(POD, round ? text : "short");
        struct pod *p = decode(json, &err);
        assert_non_null(p);
        assert_in_range(heapsize(p), 1, 8192);
        assert_int_equal(strlen(p->finalizer), round ? 128 : 5);
        assert_string_equal(p->node, round ? "" : "short");
        assert_string_equal(p->reason, round ? "" : "short");
        assert_string_equal(p->type, round ? "" : "short");
        assert_int_equal(strlen(p->message), round ? 512 : 5);
        assert_int_equal(strlen(p->unplaced_by), round ? 512 : 5);
        if (!round) /* a container without a name is none of ours */
            assert_int_equal(strlen(p->training.message), 5);
        free(p);
    }
    cleanup_free char *versioned =
        filled("{'metadata':{'name':'p','namespace':'n','uid':'u','resourceVersion':'@'}}", text);
    assert_null(decode(versioned, &err)); /* no resourceVersion is like that */
}

static void test_unreadable(void **state)
{
    struct err err, why;
    cleanup_json cJSON *j = jsontext_parse("{" META "}");

    (void)state;
    err_set(&why, ERR_INVALID, "because");
    struct pod *p = pod_decode(j, &why, &err);
    assert_string_equal(p->unreadable, "because");
    assert_string_equal(p->owner_uid, "job");
    assert_int_equal(p->phase, POD_PHASE_UNKNOWN);
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proxy_anywhere),
        cmocka_unit_test(test_working_beside),
        cmocka_unit_test(test_address),
        cmocka_unit_test(test_numbers_in_labels),
        cmocka_unit_test(test_bare),
        cmocka_unit_test(test_deletion),
        cmocka_unit_test(test_long_message_keeps_its_end),
        cmocka_unit_test(test_secrets_in_messages),
        cmocka_unit_test(test_key_in_the_environment),
        cmocka_unit_test(test_init_containers),
        cmocka_unit_test(test_beside),
        cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_every_string_is_bounded),
        cmocka_unit_test(test_largest),
        cmocka_unit_test(test_unreadable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
