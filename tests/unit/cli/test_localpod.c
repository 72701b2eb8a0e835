/* test_localpod.c - what `kubectl ptj run` would start is what the plan's pods would run: argv and environment compared for
 * every golden job and every sample.
 */
#include "test.h"

#include "cli/jobfile.h"
#include "cli/run/localpod.h"
#include "common/fsutil.h"
#include "operator/plan/plan.h"
#include "plancase.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define SAMPLES TK_SOURCE_DIR "/deploy/samples"

static const char *nothing(void *ctx, const char *name)
{
    (void)ctx, (void)name;
    return NULL;
}

static const struct expand_scope NO_SHELL = {nothing, NULL};

/* The plan's word as it must be here: pod 0 is on loopback, torchrun the machine's. */
static bool same(const char *plans, const char *ours, const char *master, struct arena *a)
{
    const char *at;

    if (strstr(plans, "$(")) /* test_expands */
        return true;
    if (strcmp(plans, "/torchkeeper/torchrun") == 0)
        return strcmp(ours, "torchrun") == 0;
    if (strlen(plans) == strcspn(master, ".") && strncmp(plans, master, strlen(plans)) == 0)
        return strcmp(ours, "127.0.0.1") == 0;
    while ((at = strstr(plans, master)))
        plans = arena_printf(a, "%.*s127.0.0.1%s", (int)(at - plans), plans, at + strlen(master));
    return strcmp(plans, ours) == 0;
}

static void compare_argv(const cJSON *container, const struct localpod *pod, const char *master,
                         struct arena *a)
{
    static const char *const KEYS[] = {"command", "args"};
    const cJSON *w;
    int n = 0;

    for (size_t i = 0; i < ARRAY_LEN(KEYS); i++)
        cJSON_ArrayForEach(w, cJSON_GetObjectItemCaseSensitive(container, KEYS[i]))
        {
            if (!pod->argv[n] || !same(w->valuestring, pod->argv[n], master, a))
                fail_msg("%s: word %d is %s, the plan's %s", pod->name, n, pod->argv[n], w->valuestring);
            n++;
        }
    assert_null(pod->argv[n]);
}

static void compare_env(const cJSON *container, const struct localpod *pod, const char *master,
                        struct arena *a)
{
    const cJSON *e;
    int n = 0;

    cJSON_ArrayForEach(e, cJSON_GetObjectItemCaseSensitive(container, "envFrom"))
        assert_string_equal(pod->env[n++].name, "envFrom");
    cJSON_ArrayForEach(e, cJSON_GetObjectItemCaseSensitive(container, "env"))
    {
        const char *name = json_str(e, "name");
        const char *value = json_str(e, "value");
        if (strcmp(name, "PTJ_TERMINATION_LOG") == 0 || strcmp(name, "TORCHKEEPER_PROGRESS_PORT") == 0)
            continue;
        assert_true(n < pod->n_env);
        if (strcmp(name, pod->env[n].name) != 0 || (value && !same(value, pod->env[n].value, master, a)))
            fail_msg("%s: %s=%s, the plan's %s=%s", pod->name, pod->env[n].name, pod->env[n].value, name,
                     value);
        n++;
    }
    assert_int_equal(n, pod->n_env);
}

static int compare_pod(const struct trainjob *job, const struct action *act, int order)
{
    cleanup_arena struct arena a = {0};
    struct err err = {0};
    struct localpod pod;
    cleanup_json cJSON *body = json_parse(act->body, strlen(act->body), &err);
    const cJSON *container = trainjob_training_container(json_child(body, "spec"));
    const char *master =
        arena_printf(&a, "%s-%s-0.%s-rdzv", job->name, job->spec.replica_specs[0].type, job->name);

    assert_int_equal(localpod_make(job, order, &NO_SHELL, &a, &pod, &err), 0);
    assert_string_equal(pod.name, act->name);
    compare_argv(container, &pod, master, &a);
    compare_env(container, &pod, master, &a);
    return 1;
}

/* Containers that rely on their image's command get one: without, nothing can run here. */
static void give_commands(cJSON *job)
{
    cJSON *r;

    cJSON_ArrayForEach(r, json_find(job, (const char *[]){"spec", "replicaSpecs", NULL}))
    {
        cJSON *c = (cJSON *)(uintptr_t)trainjob_training_container(
            json_find(r, (const char *[]){"template", "spec", NULL}));
        if (cJSON_IsObject(c) && !cJSON_GetObjectItemCaseSensitive(c, "command"))
            cJSON_AddItemToArray(cJSON_AddArrayToObject(c, "command"), cJSON_CreateString("python"));
    }
}

/* The plan makes one pod of each type before the second of any. */
static int order_of(const struct trainjob *job, const char *name)
{
    char wanted[128];
    int order = 0;

    for (int t = 0; t < job->spec.n_replica_specs; t++)
        for (int i = 0; i < job->spec.replica_specs[t].replicas; i++, order++) {
            snprintf(wanted, sizeof(wanted), "%s-%s-%d", job->name, job->spec.replica_specs[t].type, i);
            if (strcmp(wanted, name) == 0)
                return order;
        }
    fail_msg("%s: no pod of this job", name);
    return -1;
}

/* Returns how many pods were compared; -1: the spec is invalid. */
static int compare_job(const cJSON *object)
{
    cleanup_arena struct arena a = {0};
    struct plan plan = {0};
    struct err err;
    cleanup_trainjob struct trainjob *job = jobfile_decode(object, "ns", &err);
    int pods = 0, compared = 0;

    if (!job)
        return -1;
    struct plan_input in = {.job = job,
                            .now_ms = 1000000,
                            .create_bytes = 1 << 28,
                            .tensorboard_image = "tb",
                            .launcher_image = "l"};
    plan_trainjob(&in, &a, &plan);
    for (int i = 0; i < plan.n_actions; i++)
        if (plan.actions[i].kind == ACTION_CREATE && plan.actions[i].child == CHILD_POD) {
            compared += compare_pod(job, &plan.actions[i], order_of(job, plan.actions[i].name));
            pods++;
        }
    if (!pods && !job->spec.run_policy.managed_by)
        fail_msg("%s: the plan creates no pod", job->name);
    return compared;
}

static void test_golden_jobs(void **state)
{
    (void)state;
    struct plancases cases;
    struct dirent **names = NULL;
    struct err err;
    int jobs = 0, pods = 0;
    const int files = plancases_list(&names);

    assert_int_equal(plancases_open(&cases, &err), 0);
    for (int i = 0; i < files; i++) {
        cleanup_json cJSON *job = plancase_job(&cases, names[i]->d_name, &err);
        assert_non_null(job);
        cJSON *spec = cJSON_GetObjectItemCaseSensitive(job, "spec");
        cJSON_DeleteItemFromObjectCaseSensitive(cJSON_GetObjectItemCaseSensitive(job, "metadata"),
                                                "deletionTimestamp");
        cJSON_DeleteItemFromObjectCaseSensitive(spec, "suspend");
        cJSON_DeleteItemFromObjectCaseSensitive(
            cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(spec, "runMode"), "pause"),
            "enabled");
        give_commands(job);
        const int n = compare_job(job);
        jobs += n > 0;
        pods += n > 0 ? n : 0;
        free(names[i]);
    }
    free(names);
    plancases_close(&cases);
    print_message("%d jobs, %d pods\n", jobs, pods);
    assert_true(jobs > 200 && pods > jobs);
}

static void test_samples(void **state)
{
    (void)state;
    struct dirent *e;
    int jobs = 0;
    DIR *d = opendir(SAMPLES);

    assert_non_null(d);
    while ((e = readdir(d))) {
        cleanup_buf struct buf text = BUF_INIT(1 << 20);
        cleanup_json cJSON *entries = cJSON_CreateArray();
        const cJSON *entry;
        char at[512];
        struct err err;
        snprintf(at, sizeof(at), SAMPLES "/%s", e->d_name);
        if (e->d_name[0] == '.' || fs_read_regular(at, &text, &err) < 0)
            continue;
        assert_int_equal(jobfile_parse(e->d_name, buf_str(&text), text.len, entries, &err), 0);
        cJSON_ArrayForEach(entry,
                           entries) if (strcmp(json_str(jobfile_object(entry), "kind"), TRAINJOB_KIND) == 0)
        {
            assert_true(compare_job(jobfile_object(entry)) > 0);
            jobs++;
        }
    }
    closedir(d);
    assert_true(jobs >= 4);
}

static const char *one_of_two(void *ctx, const char *name)
{
    (void)ctx;
    return strcmp(name, "A") == 0 ? "1" : strcmp(name, "E") == 0 ? "" : NULL;
}

static void test_expands(void **state)
{
    (void)state;
    static const char *const CASES[][2] = {{"", ""},         {"$(A)", "1"},     {"x$(A)y$(A)", "x1y1"},
                                           {"$(B)", "$(B)"}, {"$$(A)", "$(A)"}, {"$$$(A)", "$1"},
                                           {"$(A", "$(A"},   {"$A $", "$A $"},  {"a$(E)b", "ab"},
                                           {"$$", "$"},      {"$()", "$()"},    {"$(B)$(A)", "$(B)1"}};
    const struct expand_scope scope = {one_of_two, NULL};
    cleanup_arena struct arena a = {0};
    struct err err;

    for (size_t i = 0; i < ARRAY_LEN(CASES); i++)
        assert_string_equal(expand(&a, CASES[i][0], &scope, &err), CASES[i][1]);
    char *many = test_malloc(EXPAND_BYTES_MAX + 1);
    for (int i = 0; i < EXPAND_BYTES_MAX; i += 4)
        memcpy(many + i, "$(A)", 4);
    many[EXPAND_BYTES_MAX] = '\0';
    assert_int_equal(strlen(expand(&a, many, &scope, &err)), EXPAND_BYTES_MAX / 4);
    memset(many, 'x', EXPAND_BYTES_MAX - 4); /* one place: under sanitizers each strstr reads to the end */
    assert_int_equal(strlen(expand_replace(&a, many, "$(A)", "four", &err)), EXPAND_BYTES_MAX);
    assert_null(expand_replace(&a, many, "$(A)", "fives", &err));
    assert_non_null(strstr(err.msg, "is longer than"));
    test_free(many);
}

static void test_paths(void **state)
{
    static const struct expand_path PATHS[] = {
        {"/data", "/D"}, {"/data/sub", "/S"}, {"/a.b", "/x y"}, {"/D", "/never"}};
    static const char *const CASES[][2] = {
        {"", ""},
        {"/data", "/D"},
        {"/data/", "/D/"},
        {"/data/x/data", "/D/x/data"},
        {"/data/sub/x:/data/su", "/S/x:/D/su"},
        {"--in=/data,/data;(/data)", "--in=/D,/D;(/D)"},
        {"cd /data&&\"/data\"'/data'", "cd /D&&\"/D\"'/D'"},
        {"/data2 /data-x /data_ /data.d", "/data2 /data-x /data_ /data.d"},
        {"x/data ./data ~/data ../data", "x/data ./data ~/data ../data"},
        {"$HOME/data ${H}/data $(pwd)/data", "$HOME/data ${H}/data $(pwd)/data"},
        {"//data http://data/", "//data http://data/"},
        {"/a.b /a-b /", "/x y /a-b /"}};
    cleanup_arena struct arena a = {0};
    struct err err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++)
        assert_string_equal(expand_paths(&a, CASES[i][0], PATHS, ARRAY_LEN(PATHS), &err), CASES[i][1]);
    char *many = test_malloc(EXPAND_BYTES_MAX + 1);
    memset(many, ':', EXPAND_BYTES_MAX);
    many[EXPAND_BYTES_MAX] = '\0';
    memcpy(many, "/a.b", 4);
    assert_non_null(expand_paths(&a, many, PATHS, 2, &err));
    assert_null(expand_paths(&a, many, (const struct expand_path[]){{"/a.b", "/longer"}}, 1, &err));
    test_free(many);
}

static void test_prints_for_a_shell(void **state)
{
    (void)state;
    static const char YAML[] =
        "apiVersion: batch.tensorstack.dev/v1beta1\nkind: PyTorchTrainingJob\nmetadata: {name: p}\nspec:\n"
        "  replicaSpecs:\n  - type: node\n    template: {spec: {containers: [{name: c, image: i,\n"
        "      command: [echo, \"it's\", \"$(A) $$(A)\", ''], env: [{name: A, value: 'b;c'}, {name: 'D;E', "
        "value: x}]}]}}\n";
    cleanup_json cJSON *entries = cJSON_CreateArray();
    cleanup_buf struct buf text = BUF_INIT(1 << 12);
    cleanup_arena struct arena a = {0};
    struct localpod pod;
    struct err err;

    assert_int_equal(jobfile_parse("f", YAML, strlen(YAML), entries, &err), 0);
    cleanup_trainjob struct trainjob *job = jobfile_decode(jobfile_object(entries->child), "ns", &err);
    assert_int_equal(localpod_make(job, 0, &NO_SHELL, &a, &pod, &err), 0);
    localpod_print(&pod, &text);
    assert_non_null(
        strstr(buf_str(&text), " \\\n  'A=b;c' \\\n  'D;E=x' \\\n  echo 'it'\\''s' 'b;c $(A)' ''\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_jobs),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_expands),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_prints_for_a_shell),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
