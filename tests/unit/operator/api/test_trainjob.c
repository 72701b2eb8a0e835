/* test_trainjob.c - decoding a job: defaults, every refusal with its path, and nonsense in every field. */
#include "jsontext.h"
#include "operator/api/quantity.h"
#include "operator/api/trainjob.h"
#include "test.h"
#include "yamldoc.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define JOB(spec) "{'metadata':{'name':'j','namespace':'n','uid':'u','resourceVersion':'1'},'spec':" spec "}"
#define POD "'template':{'spec':{'containers':[{'name':'c'}]}}"
#define WITH(members) JOB("{'replicaSpecs':[{'type':'node'," POD "}]," members "}")

static struct trainjob *decode(const char *text)
{
    struct err err;
    struct trainjob *job = trainjob_decode(jsontext_parse(text), &err);

    assert_non_null(job);
    return job;
}

/* T9k's manifests name the folders of logs in another way. */
static void test_filesets(void **state)
{
    static const char *const LOGS[][2] = {
        {"tutorial", "em/data parallel/log"}, {"yolo.v5", ""}, {"yolo.v5", "run"}};
    cleanup_trainjob struct trainjob *job =
        decode(JOB("{'replicaSpecs':[{'type':'a','template':{'spec':{'containers':[{'name':'c'}]}}}],'"
                   "tensorboardSpec':{'trainingLogFilesets':['t9k://pvc/tutorial/em/data "
                   "parallel/log','t9k://pvc/yolo.v5','t9k://pvc/yolo.v5/./run/']}}"));

    (void)state;
    assert_null(job->spec_error);
    assert_int_equal(job->spec.tensorboard.n_logs, 3);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(job->spec.tensorboard.logs[i].pvc, LOGS[i][0]);
        assert_string_equal(job->spec.tensorboard.logs[i].path, LOGS[i][1]);
    }
}

static void test_gpus(void **state)
{
    cleanup_trainjob struct trainjob *job =
        decode(JOB("{'replicaSpecs':[{'type':'a','replicas':3,'template':{'spec':{'containers':[{'name':'c','"
                   "resources':{'limits':{'cpu':2,'nvidia.com/gpu':'4','amd.com/gpu':1}}}]}}}]}"));

    (void)state;
    assert_null(job->spec_error);
    assert_int_equal(job->spec.gpus, 15);
}

static void test_proc_per_node(void **state)
{
    static const struct {
        const char *given, *want; /* want NULL: refused */
    } ROWS[] = {{"4", "4"},       {"'4'", "4"},       {"4096", "4096"}, {"'gpu'", "gpu"}, {"'auto'", "auto"},
                {"'cpu'", "cpu"}, {"'4096'", "4096"}, {"4097", NULL},   {"'4097'", NULL}, {"'xpu'", NULL},
                {"''", NULL},     {"0", NULL},        {"'-1'", NULL},   {"1.5", NULL}};
    char text[320];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        snprintf(text, sizeof(text), WITH("'torchrunConfig':{'procPerNode':%s}"), ROWS[i].given);
        cleanup_trainjob struct trainjob *job = decode(text);
        if (ROWS[i].want ? job->spec_error != NULL : !job->spec_error)
            fail_msg("%s: %s", ROWS[i].given, job->spec_error ? job->spec_error : "accepted");
        if (ROWS[i].want)
            assert_string_equal(job->spec.torchrun.proc_per_node, ROWS[i].want);
    }
}

static void test_gpu_names(void **state)
{
    static const struct {
        const char *limits;
        int64_t n;
        bool some;
    } ROWS[] = {
        {"'nvidia.com/gpu':8", 8, true},
        {"'nvidia.com/gpu':'2','amd.com/gpu':1", 3, true},
        {"'nvidia.com/gpu.shared':1", 1, true},
        {"'nvidia.com/gpu':'1k'", 1000, true},
        {"'nvidia.com/mig-1g.5gb':2", 2, true},
        {"'hygon.com/dcu':4", 4, true},
        {"'gpu.intel.com/i915':1,'gpu.intel.com/tiles':2", 1, true},
        {"'nvidia.com/gpu':0", 0, false},
        {"'aliyun.com/gpu-mem':16", 0, true},
        {"'nvidia.com/gpu':1,'nvidia.com/gpumem':8000", 1, true},
        {"'cpu':4,'memory':'1Gi','rdma/hca':1", 0, false},
        {"'nvidia.com/gpu':'x','amd.com/gpu':-1,'b.com/gpu':1e300,'c.com/gpu':{}", 0, false},
    };
    char text[256];
    bool some;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        snprintf(text, sizeof(text), "{'resources':{'limits':{%s}}}", ROWS[i].limits);
        cleanup_json cJSON *c = jsontext_parse(text);
        assert_int_equal(trainjob_gpus(c, &some), ROWS[i].n);
        assert_int_equal(some, ROWS[i].some);
    }
    assert_int_equal(trainjob_gpus(NULL, &some), 0);
    assert_false(some);
}

#define TORCHRUN "'torchrunConfig':{'enabled':true,'maxRestarts':1},"

struct row {
    const char *text, *want;
};

/* A job with this pod spec; one whose launcher is ours. */
#define SPEC(spec) JOB("{'replicaSpecs':[{'type':'node','template':{'spec':" spec "}}]}")
#define LAUNCHED(spec)                                                                                       \
    JOB("{'torchrunConfig':{'enabled':true,'launcher':'Torchkeeper'},'replicaSpecs':[{'type':'node','"       \
        "template':{'spec':" spec "}}]}")

/* That each field is refused where the schema refuses it says test_schema.c; here stand one row for each form of words, and what no
 * schema knows. */
#define RULES(rules) WITH("'runPolicy':{'podFailurePolicy':{'rules':[" rules "]}}")

static const struct row REFUSED[] = {
    {WITH("'runPolicy':{'schedulingPolicy':{'minAvailable':2}}"),
     "spec.runPolicy.schedulingPolicy.minAvailable: expected at most the number of pods (1), got 2"},
    {WITH(TORCHRUN "'elastic':{'enabled':true,'minReplicas':1,'maxReplicas':3,'expectedReplicas':3},'"
                   "runPolicy':{'schedulingPolicy':{'minAvailable':2}}"),
     "spec.runPolicy.schedulingPolicy.minAvailable: expected at most minReplicas (1), got 2"},
    {WITH("'runPolicy':{'schedulingPolicy':{'queue':'a'}},'scheduler':{'t9kScheduler':{'queue':'b'}}"),
     "spec.scheduler.t9kScheduler.queue: expected the same as in runPolicy.schedulingPolicy.queue, \"a\""},
    {WITH("'scheduler':{'t9kScheduler':{'priority':101}}"),
     "spec.scheduler.t9kScheduler.priority: expected an integer 0..100, got 101"},
    {WITH("'scheduler':{'volcano':{}}"), "spec.scheduler.volcano: unknown field"},
    {RULES("{}"), "spec.runPolicy.podFailurePolicy.rules[0].action: expected a value, got nothing"},
    {RULES("7"), "spec.runPolicy.podFailurePolicy.rules[0]: expected an object, got 7"},
    {RULES("{'action':'FailIndex'}"), "spec.runPolicy.podFailurePolicy.rules[0].action: expected one of "
                                      "FailJob, Ignore, Count, got \"FailIndex\""},
    {RULES("{'action':'Count'}"),
     "spec.runPolicy.podFailurePolicy.rules[0]: expected onExitCodes or onPodConditions, one of them"},
    {RULES("{'action':'Count','onPodConditions':[]}"),
     "spec.runPolicy.podFailurePolicy.rules[0]: expected onExitCodes or onPodConditions, one of them"},
    {RULES(
         "{'action':'Count','onPodConditions':[{'type':'A'}],'onExitCodes':{'operator':'In','values':[1]}}"),
     "spec.runPolicy.podFailurePolicy.rules[0]: expected onExitCodes or onPodConditions, one of them"},
    {RULES("{'action':'Count','onExitCodes':{'values':[1]}}"),
     "spec.runPolicy.podFailurePolicy.rules[0].onExitCodes.operator: expected a value, got nothing"},
    {RULES("{'action':'Count','onExitCodes':{'operator':'In'}}"),
     "spec.runPolicy.podFailurePolicy.rules[0].onExitCodes.values: expected 1..255 exit codes, got none"},
    {RULES("{'action':'Count','onExitCodes':{'operator':'In','values':[0]}}"),
     "spec.runPolicy.podFailurePolicy.rules[0].onExitCodes.values[0]: expected an integer 1..255: 0 is not a "
     "failure"},
    {RULES("{'action':'Count','onExitCodes':{'operator':'NotIn','values':[0,256]}}"),
     "spec.runPolicy.podFailurePolicy.rules[0].onExitCodes.values[1]: expected an integer 0..255"},
    {RULES("{'action':'Count','onExitCodes':{'operator':'In','values':[2,1]}}"),
     "spec.runPolicy.podFailurePolicy.rules[0].onExitCodes.values[1]: expected a larger number than the one "
     "before it"},
    {RULES("{'action':'Count','onExitCodes':{'operator':'In','values':[2,2]}}"),
     "spec.runPolicy.podFailurePolicy.rules[0].onExitCodes.values[1]: expected a larger number than the one "
     "before it"},
    {RULES("{'action':'Count','onExitCodes':{'operator':'In','values':[1.5]}}"),
     "spec.runPolicy.podFailurePolicy.rules[0].onExitCodes.values[0]: expected an integer 1..255: 0 is not a "
     "failure"},
    {RULES("{'action':'Count','onExitCodes':{'operator':'In','values':[1],'containerName':'d'}}"),
     "spec.runPolicy.podFailurePolicy.rules[0].onExitCodes.containerName: no template has a container or "
     "init container \"d\""},
    {RULES("{'action':'Count','onPodConditions':[{'status':'True'}]}"),
     "spec.runPolicy.podFailurePolicy.rules[0].onPodConditions[0].type: expected a value, got nothing"},
    {RULES("{'action':'Count','onPodConditions':[{'type':'A','status':'Yes'}]}"),
     "spec.runPolicy.podFailurePolicy.rules[0].onPodConditions[0].status: expected one of True, False, "
     "Unknown, got \"Yes\""},
    {WITH("'managedBy':'me'"),
     "spec.managedBy: expected a domain and a path, such as kueue.x-k8s.io/multikueue, got \"me\""},
    {WITH("'managedBy':'a.b/c','runPolicy':{'managedBy':'a.b/d'}"),
     "spec.managedBy: expected the same as in runPolicy.managedBy, \"a.b/d\""},
    {WITH("'managedBy':'kueue.x-k8s.io/multikueue','runPolicy':{'managedBy':'kueue.x-k8s.io/multikueue'}"),
     "spec.runPolicy.managedBy: expected kueue.x-k8s.io/multikueue in spec.managedBy alone: MultiKueue does "
     "not remove this one from the copy in the worker cluster"},
    {JOB("{}"), "spec.replicaSpecs: expected 1..16 items, got none"},
    {JOB("[]"), "spec: expected an object, got a list"},
    {WITH("'x':1"), "spec.x: unknown field"},
    {JOB("{'replicaSpecs':[7]}"), "spec.replicaSpecs[0]: expected an object, got 7"},
    {JOB("{'replicaSpecs':[{" POD "}]}"),
     "spec.replicaSpecs[0].type: expected a DNS label (lower-case letters, digits, '-'), got nothing"},
    {JOB("{'replicaSpecs':[{'type':'A'," POD "}]}"),
     "spec.replicaSpecs[0].type: expected a DNS label (lower-case letters, digits, '-')"},
    {JOB("{'replicaSpecs':[{'type':'a'}]}"),
     "spec.replicaSpecs[0].template: expected a pod template, got nothing"},
    {SPEC("{'containers':[{}]}"), "spec.replicaSpecs[0].template.spec.containers[0].name: expected a name"},
    {SPEC("{'containers':[{'name':'c','resources':{'limits':{'cpu':1,'nvidia.com/gpu':'1x'}}}]}"),
     "spec.replicaSpecs[0].template.spec.containers[0].resources.limits.nvidia.com/gpu: expected a quantity "
     "such as 1, 500m or 2Gi, got \"1x\""},
    {SPEC("{'containers':[{'name':'c'}],'initContainers':[{'name':'i'},{'name':'c','resources':{'requests':{'"
          "cpu':true}}}]}"),
     "spec.replicaSpecs[0].template.spec.initContainers[1].resources.requests.cpu: expected a quantity such "
     "as 1, 500m or 2Gi, got something else"},
    {WITH("'tensorboardSpec':{'logDir':{'pvc':[{'name':'a'}]},'resources':{'limits':{'memory':'2GB'}}}"),
     "spec.tensorboardSpec.resources.limits.memory: expected a quantity such as 1, 500m or 2Gi, got \"2GB\""},
    {WITH("'torchrunConfig':{'procPerNode':'four'}"),
     "spec.torchrunConfig.procPerNode: expected 1..4096, gpu, auto or cpu, got \"four\""},
    {WITH("'torchrunConfig':{'extraOptions':[1]}"), "spec.torchrunConfig.extraOptions[0]: expected a string"},
    {JOB("{'replicaSpecs':[{'type':'node','template':{'metadata':{'label':{}},'spec':{'containers':[{'name':'"
         "c'}]}}}]}"),
     "spec.replicaSpecs[0].template.metadata.label: unknown field"},
    {JOB("{'replicaSpecs':[{'type':'node','template':{'volumes':[],'spec':{'containers':[{'name':'c'}]}}}]}"),
     "spec.replicaSpecs[0].template.volumes: unknown field"},
    {SPEC("{'containers':[{'name':'c','resources':{'limits':{'memory':9007199254740993}}}]}"),
     "spec.replicaSpecs[0].template.spec.containers[0].resources.limits.memory: expected a number below "
     "2^53, got about 9007199254740992: write a smaller number, or a string"},
    {JOB("{'replicaSpecs':[{'type':'node','template':{'spec':{'containers':[{'name':'c'}],'x':[0,-1e300]}}}]"
         "}"),
     "spec.replicaSpecs[0].template.spec.x[1]: expected a number below 2^53, got about "
     "-1.0000000000000001e+300: write a smaller number, or a string"},
    {WITH("'runPolicy':{'retryableExitCodes':[0]}"),
     "spec.runPolicy.retryableExitCodes[0]: expected an integer 1..255"},
    {WITH("'runPolicy':{'progressTimeoutSeconds':30.5}"),
     "spec.runPolicy.progressTimeoutSeconds: expected an integer 30..604800, got 30.5"},
    {WITH("'runPolicy':{'progressTimeoutSeconds':30}"),
     "spec.runPolicy.progressTimeoutSeconds: needs torchrunConfig.launcher: Torchkeeper: set that, or remove "
     "progressTimeoutSeconds"},
    {WITH("'torchrunConfig':{'enabled':true,'launcher':'Image'},'runPolicy':{'progressTimeoutSeconds':30}"),
     "spec.runPolicy.progressTimeoutSeconds: needs torchrunConfig.launcher: Torchkeeper: set that, or remove "
     "progressTimeoutSeconds"},
    {WITH("'runMode':{'debug':{'replicaSpecs':[{'type':'ghost'}]}}"),
     "spec.runMode.debug.replicaSpecs[0].type: expected one of the types of spec.replicaSpecs, got "
     "\"ghost\""},
    {WITH("'runMode':{'debug':{'replicaSpecs':[{}]}}"),
     "spec.runMode.debug.replicaSpecs[0].type: expected one of the types of spec.replicaSpecs, got nothing"},
    {WITH("'runMode':{'debug':{'replicaSpecs':[{'type':'node','args':[]}]}}"),
     "spec.runMode.debug.replicaSpecs[0].args: unknown field"},
    {WITH("'runMode':{'pause':{'resumeSpecs':[{'type':'node','command':[1]}]}}"),
     "spec.runMode.pause.resumeSpecs[0].command[0]: expected a string"},
    {WITH("'runMode':{'pause':{'resumeSpecs':[{'type':'node'},{'type':'node'}]}}"),
     "spec.runMode.pause.resumeSpecs[1]: the type \"node\" is given twice"},
    {WITH("'runMode':{'pause':{'resumeSpecs':[7]}}"),
     "spec.runMode.pause.resumeSpecs[0]: expected an object, got 7"},
    {WITH("'elastic':{'enabled':true,'minReplicas':1,'maxReplicas':2}"),
     "spec.elastic: elastic jobs need torchrunConfig.enabled: true and torchrunConfig.maxRestarts of at "
     "least 1"},
    {WITH(TORCHRUN "'elastic':{'enabled':true}"),
     "spec.elastic: minReplicas and maxReplicas are both needed"},
    {WITH(TORCHRUN "'elastic':{'enabled':true,'minReplicas':3,'maxReplicas':2}"),
     "spec.elastic.minReplicas: expected minReplicas <= maxReplicas, got 3 and 2"},
    {WITH(TORCHRUN "'elastic':{'enabled':true,'minReplicas':2,'maxReplicas':3,'expectedReplicas':4}"),
     "spec.elastic.expectedReplicas: expected 2..3 (minReplicas..maxReplicas), got 4"},
    {WITH(TORCHRUN "'elastic':{'enabled':true,'minReplicas':2,'maxReplicas':3}"),
     "spec.elastic.expectedReplicas: expected 2..3 (minReplicas..maxReplicas), got 1 from replicas"},
    {WITH("'torchrunConfig':{'enabled':true,'maxRestarts':1,'minNodes':1},'elastic':{'enabled':true,'"
          "minReplicas':1,'maxReplicas':2}"),
     "spec.elastic: torchrunConfig.minNodes is the old way to request an elastic job: with elastic, remove "
     "it"},
    {WITH("'torchrunConfig':{'enabled':true,'maxRestarts':1,'rdzvBackend':'static'},'elastic':{'enabled':"
          "true,'minReplicas':1,'maxReplicas':2}"),
     "spec.elastic: elastic jobs need another torchrunConfig.rdzvBackend than static"},
    {WITH("'torchrunConfig':{'enabled':true,'minNodes':2}"),
     "spec.torchrunConfig.minNodes: expected at most the number of pods (1), got 2"},
    {WITH(TORCHRUN "'elastic':{'enabled':true,'minReplicas':0}"),
     "spec.elastic.minReplicas: expected an integer 1..1024, got 0"},
    {WITH("'tensorboardSpec':{}"), "spec.tensorboardSpec.logDir.pvc: expected at least one PVC"},
    {WITH("'tensorboardSpec':{'logDir':{'pvc':[{}]}}"),
     "spec.tensorboardSpec.logDir.pvc[0].name: expected the name of a PersistentVolumeClaim"},
    {WITH("'tensorboardSpec':{'logDir':{'pvc':[{'name':'a','subPath':['x,y']}]}}"),
     "spec.tensorboardSpec.logDir.pvc[0].subPath[0]: expected a path without ',' and ':', got \"x,y\""},
    {WITH("'tensorboardSpec':{'logDir':{'pvc':[{'name':'a','subPath':['log','./a//../../b']}]}}"),
     "spec.tensorboardSpec.logDir.pvc[0].subPath[1]: expected a path inside the volume, got "
     "\"./a//../../b\""},
    {WITH("'tensorboardSpec':{'logDir':{'pvc':[{'name':'../a'}]}}"),
     "spec.tensorboardSpec.logDir.pvc[0].name: expected the name of a PersistentVolumeClaim"},
    {WITH("'tensorboardSpec':{'trainingLogFilesets':[]}"),
     "spec.tensorboardSpec.logDir.pvc: expected at least one PVC"},
    {WITH("'tensorboardSpec':{'trainingLogFilesets':['t9k://pvc/a','s3://b/c']}"),
     "spec.tensorboardSpec.trainingLogFilesets[1]: expected t9k://pvc/NAME/PATH; other storage is not "
     "supported, got \"s3://b/c\""},
    {WITH("'tensorboardSpec':{'trainingLogFilesets':['t9k://pvc//log']}"),
     "spec.tensorboardSpec.trainingLogFilesets[0]: expected t9k://pvc/NAME/PATH; other storage is not "
     "supported, got \"t9k://pvc//log\""},
    {WITH("'tensorboardSpec':{'trainingLogFilesets':['t9k://pvc/a/../b']}"),
     "spec.tensorboardSpec.trainingLogFilesets[0]: expected a path inside the volume, got \"../b\""},
    {WITH("'tensorboardSpec':{'trainingLogFilesets':['t9k://pvc/a'],'logDir':{'pvc':[{'name':'a'}]}}"),
     "spec.tensorboardSpec.trainingLogFilesets: expected it or logDir, not both"},
    {WITH("'torchrunConfig':{'enabled':true,'rdzvBackend':'etcd'}"),
     "spec.torchrunConfig.rdzvBackend: etcd needs --rdzv_endpoint=<host:port> in extraOptions"},
    {LAUNCHED("{'containers':[{'name':'c'},{'name':'torchkeeper-launcher'}]}"),
     "spec.replicaSpecs[0].template.spec.containers[1].name: torchkeeper-launcher is the operator's own with "
     "torchrunConfig.launcher: Torchkeeper: expected another name"},
    {WITH("'torchrunConfig':{'enabled':true,'launcher':'Torchkeeper','rdzvBackend':'etcd','extraOptions':['--"
          "rdzv_endpoint=e:1']}"),
     "spec.torchrunConfig.launcher: Torchkeeper needs the rdzvBackend c10d or static, got etcd"},
    {LAUNCHED("{'volumes':[{'name':'data','emptyDir':{}}],'containers':[{'name':'c','volumeMounts':[{'name':'"
              "data','mountPath':'/data'},{'name':'data','mountPath':'//torchkeeper/./torchrun'}]}]}"),
     "spec.replicaSpecs[0].template.spec.containers[0].volumeMounts[1].mountPath: /torchkeeper holds the "
     "launcher with torchrunConfig.launcher: Torchkeeper: expected another folder, got "
     "\"//torchkeeper/./torchrun\""},
    {LAUNCHED("{'containers':[{'name':'c','volumeMounts':[{'name':'data','mountPath':'/x/../"
              "torchkeeper'}]}],'volumes':[{'name':'data','emptyDir':{}}]}"),
     "spec.replicaSpecs[0].template.spec.containers[0].volumeMounts[0].mountPath: expected a path without .. "
     "with torchrunConfig.launcher: Torchkeeper, got \"/x/../torchkeeper\""},
    {LAUNCHED(
         "{'initContainers':[{'name':'mine'},{'name':'torchkeeper-launcher'}],'containers':[{'name':'c'}]}"),
     "spec.replicaSpecs[0].template.spec.initContainers[1].name: torchkeeper-launcher is the operator's own "
     "with torchrunConfig.launcher: Torchkeeper: expected another name"},
    {LAUNCHED("{'initContainers':{'name':'mine'},'containers':[{'name':'c'}]}"),
     "spec.replicaSpecs[0].template.spec.initContainers: expected a list, got an object"},
    {LAUNCHED("{'containers':[{'name':'c'},{'name':'sidecar','volumeMounts':[{'name':'torchkeeper-launcher','"
              "mountPath':'/mine'}]}]}"),
     "spec.replicaSpecs[0].template.spec.containers[1].volumeMounts[0].name: torchkeeper-launcher is the "
     "operator's own with torchrunConfig.launcher: Torchkeeper: expected another name"},
    {LAUNCHED("{'containers':[{'name':'c','volumeMounts':{'name':'data','mountPath':'/"
              "data'}}],'volumes':[{'name':'data','emptyDir':{}}]}"),
     "spec.replicaSpecs[0].template.spec.containers[0].volumeMounts: expected a list, got an object"},
    {WITH("'torchrunConfig':{'launcher':'Torchkeeper'}"),
     "spec.torchrunConfig.launcher: Torchkeeper needs torchrunConfig.enabled: true"},
    {LAUNCHED("{'volumes':[{'name':'torchkeeper-launcher','emptyDir':{}}],'containers':[{'name':'c'}]}"),
     "spec.replicaSpecs[0].template.spec.volumes[0].name: torchkeeper-launcher is the operator's own with "
     "torchrunConfig.launcher: Torchkeeper: expected another name"},
    {LAUNCHED("{'volumes':{'name':'data','emptyDir':{}},'containers':[{'name':'c'}]}"),
     "spec.replicaSpecs[0].template.spec.volumes: expected a list, got an object"},
    {SPEC("{'containers':[]}"),
     "spec.replicaSpecs[0].template.spec.containers: expected at least one container"},
    {JOB("{'replicaSpecs':[{'type':'node','replicas':1000," POD "},{'type':'b','replicas':25," POD "}]}"),
     "spec.replicaSpecs: expected at most 1024 pods in all, got 1025"},
};

/* The number of pods is no part of what shapes them; the range is. */
static void test_elastic(void **state)
{
    cleanup_trainjob struct trainjob *two = decode(
        WITH(TORCHRUN "'elastic':{'enabled':true,'minReplicas':1,'maxReplicas':4,'expectedReplicas':2}"));
    cleanup_trainjob struct trainjob *three = decode(
        WITH(TORCHRUN "'elastic':{'enabled':true,'minReplicas':1,'maxReplicas':4,'expectedReplicas':3}"));
    cleanup_trainjob struct trainjob *wider = decode(
        WITH(TORCHRUN "'elastic':{'enabled':true,'minReplicas':1,'maxReplicas':5,'expectedReplicas':3}"));

    (void)state;
    assert_null(two->spec_error);
    assert_int_equal(two->spec.pods, 2);
    assert_int_equal(two->spec.replica_specs[0].replicas, 2);
    assert_int_equal(two->spec.run_policy.restart_scope, SCOPE_REPLICA);
    cleanup_trainjob struct trainjob *unset = decode(
        WITH(TORCHRUN "'elastic':{'enabled':true,'minReplicas':1,'maxReplicas':4,'expectedReplicas':0}"));
    assert_null(unset->spec_error);
    assert_int_equal(unset->spec.pods, 1);
    assert_string_equal(two->spec.hash, three->spec.hash);
    assert_string_not_equal(two->spec.hash, wider->spec.hash);
}

/* Whatever the API server of 1.34 reads, and nothing that it does not. */
static void test_quantities(void **state)
{
    static const char *const GOOD[] = {"0",    "1",     "+1",  "-1",  "1.",  ".5",    "1.5", "007", "1n",
                                       "1u",   "100m",  "1k",  "1M",  "1G",  "1T",    "1P",  "1E",  "1Ki",
                                       "2Mi",  "2Gi",   "1Ti", "1Pi", "1Ei", "1.5Gi", "1e3", "1E3", "1e+3",
                                       "1e-3", "-.5Ki", ".",   "+",   "Gi",  "E3",    "-.k"};
    static const char *const BAD[] = {"",     "x",     "1x",  "1X",  "2GB", "1 Gi",  "1K", "1ki",
                                      "1mi",  "1.2.3", "--1", "+-1", "..",  "1..",   "1e", "1e+",
                                      "1e3m", "1Gii",  "one", "0x1", "1,5", "1e++1", "e",  "1e1.5"};

    double amount;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(GOOD); i++)
        if (!quantity_read(GOOD[i], &amount))
            fail_msg("refused: \"%s\"", GOOD[i]);
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++)
        if (quantity_read(BAD[i], &amount))
            fail_msg("accepted: \"%s\"", BAD[i]);
    cleanup_trainjob struct trainjob *job =
        decode(SPEC("{'containers':[{'name':'c','resources':{'limits':{'cpu':1.5,'a':null,'b':' 2Gi "
                    "'},'requests':null}}]}"));
    assert_null(job->spec_error);
}

#define MISSPELT(status)                                                                                     \
    "{'metadata':{'name':'j','namespace':'n','uid':'u','resourceVersion':'1'},'spec':{'replicaSpecs':[{'"    \
    "type':'node','template':{'metadata':{'name':'x','creationTimestamp':null,'annotation':{}},'"            \
    "nodeSelector':{},'spec':{'containers':[{'name':'c'}]}}}]},'status':" status "}"

/* As an older operator began it. One that never ran is corrected first. */
static void test_a_job_that_ran_keeps_unknown_keys(void **state)
{
    static const struct {
        const char *text;
        bool taken;
    } rows[] = {
        {MISSPELT("{}"), false},
        {MISSPELT("{'phase':'Pending','attempt':1}"), false},
        {MISSPELT("{'phase':'Pending','attempt':1,'ranAttempt':0}"), true},
        {MISSPELT("{'phase':'Running','conditions':[{'type':'Running','status':'True'}]}"), true},
        {MISSPELT("{'phase':'Succeeded'}"), true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_trainjob struct trainjob *job = decode(rows[i].text);
        assert_int_equal(job->spec_error == NULL, rows[i].taken);
        assert_string_equal(rows[i].taken ? job->spec.unknown : job->spec_error,
                            "spec.replicaSpecs[0].template.nodeSelector: unknown field");
    }
}

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(REFUSED); i++) {
        cleanup_trainjob struct trainjob *job = decode(REFUSED[i].text);
        if (!job->spec_error)
            fail_msg("accepted: %s", REFUSED[i].text);
        assert_string_equal(job->spec_error, REFUSED[i].want);
        assert_int_equal(job->spec.n_replica_specs, 0);
    }
}

/* Every child's name must be a DNS label: the longest that fits, and one more. */
static void test_name_lengths(void **state)
{
    static const struct {
        const char *spec;
        int longest;
        const char *want;
    } ROWS[] = {
        {"{'replicaSpecs':[{'type':'3'," POD "}]}", 58, "-rdzv\" is longer than 63 characters"},
        {"{'replicaSpecs':[{'type':'a'," POD "}],'tensorboardSpec':{'logDir':{'pvc':[{'name':'c'}]}}}", 51,
         "-tensorboard\" is longer than 63 characters"},
        {"{'replicaSpecs':[{'type':'abcdef','replicas':10," POD "}]}", 54, "-abcdef-9\" is longer than 63"},
        {"{'replicaSpecs':[{'type':'abcdef','replicas':11," POD "}]}", 53, "-abcdef-10\" is longer than 63"},
        {"{'replicaSpecs':[{'type':'abcdef'," POD "}]," TORCHRUN
         "'elastic':{'enabled':true,'minReplicas':1,'maxReplicas':101}}",
         52, "-abcdef-100\" is longer than 63"},
    };
    char text[640];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        for (int more = 0; more < 2; more++) {
            snprintf(
                text, sizeof(text),
                "{'metadata':{'name':'j%0*d','namespace':'n','uid':'u','resourceVersion':'1'},'spec':%s}",
                ROWS[i].longest + more - 1, 0, ROWS[i].spec);
            cleanup_trainjob struct trainjob *job = decode(text);
            if (more ? !job->spec_error || !strstr(job->spec_error, ROWS[i].want) : job->spec_error != NULL)
                fail_msg("row %zu, %d more: %s", i, more, job->spec_error ? job->spec_error : "accepted");
        }
    }
}

/* What the schema admits, the decoder admits or refuses by name; what it refuses as a value, so does the
 * decoder. */
static void test_schema_table(void **state)
{
    struct dirent **names = NULL;
    int n = scandir(TK_SOURCE_DIR "/tests/golden/crd", &names, NULL, alphasort);
    struct err err;
    int good = 0;

    (void)state;
    for (int i = 0; i < n; i++) {
        char path[512];
        snprintf(path, sizeof(path), TK_SOURCE_DIR "/tests/golden/crd/%s", names[i]->d_name);
        if (strncmp(names[i]->d_name, "good-", 5) == 0) {
            cJSON *tree = yamldoc_job(path, &err);
            if (!tree)
                fail_msg("%s", err.msg);
            cleanup_trainjob struct trainjob *job = trainjob_decode(tree, &err);
            assert_non_null(job);
            if (job->spec_error)
                fail_msg("%s: %s", names[i]->d_name, job->spec_error);
            good++;
        }
        free(names[i]);
    }
    free(names);
    assert_true(good > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filesets),
        cmocka_unit_test(test_gpus),
        cmocka_unit_test(test_gpu_names),
        cmocka_unit_test(test_proc_per_node),
        cmocka_unit_test(test_elastic),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_a_job_that_ran_keeps_unknown_keys),
        cmocka_unit_test(test_quantities),
        cmocka_unit_test(test_name_lengths),
        cmocka_unit_test(test_schema_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
