/* test_samples.c - the operator accepts the jobs under deploy/samples, and they request what their comments describe. */
#include "common/cleanup.h"
#include "common/fsutil.h"
#include "common/yaml.h"
#include "operator/api/trainjob.h"
#include "test.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define SAMPLES TK_SOURCE_DIR "/deploy/samples"

/* The document of that kind in a file of several. */
static cJSON *document(const char *path, const char *kind)
{
    cleanup_buf struct buf text = BUF_INIT(1 << 20);
    cleanup_arena struct arena a = {0};
    struct yaml_tree *tree = NULL;
    struct err err = {0};

    if (fs_read(path, &text, &err) < 0 || yaml_documents(path, buf_str(&text), text.len, &a, &tree, &err) < 0)
        fail_msg("%s: %s", path, err.msg);
    for (; tree; tree = tree->next) {
        cJSON *doc = yaml_json(tree);
        if (strcmp(json_str(doc, "kind"), kind) == 0)
            return doc;
        cJSON_Delete(doc);
    }
    fail_msg("%s: no %s in it", path, kind);
    return NULL;
}

/* As the API server would hand it out. */
static struct trainjob *sample(const char *path)
{
    cJSON *doc = document(path, "PyTorchTrainingJob");
    cJSON *metadata = cJSON_GetObjectItem(doc, "metadata");
    struct err err;

    cJSON_AddStringToObject(metadata, "namespace", "ns");
    cJSON_AddStringToObject(metadata, "uid", "u");
    cJSON_AddStringToObject(metadata, "resourceVersion", "1");
    struct trainjob *job = trainjob_decode(doc, &err);
    if (!job)
        fail_msg("%s: %s", path, err.msg);
    if (job->spec_error)
        fail_msg("%s: %s", path, job->spec_error);
    return job;
}

static void test_every_sample_is_taken(void **state)
{
    cleanup_closedir DIR *d = opendir(SAMPLES);
    int n = 0;

    (void)state;
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));) {
        char path[512];
        if (!strstr(e->d_name, ".yaml"))
            continue;
        snprintf(path, sizeof(path), SAMPLES "/%s", e->d_name);
        cleanup_trainjob struct trainjob *job = sample(path);
        assert_true(job->spec.torchrun.present);
        n++;
    }
    assert_true(n >= 4);
}

/* Four ranks to a pod. A sample that people copy must do what it promises. */
static void expect_gpus(const char *path, int pods)
{
    cleanup_trainjob struct trainjob *job = sample(path);
    cleanup_json cJSON *doc = document(path, "PyTorchTrainingJob");
    cleanup_free char *text = cJSON_PrintUnformatted(doc);

    assert_int_equal(job->spec.gpus, 4 * pods);
    assert_int_equal(job->spec.pods, pods);
    assert_non_null(strstr(text, "\"procPerNode\":\"4\""));
    assert_non_null(strstr(text, "\"--backend\",\"nccl\""));
    assert_non_null(strstr(text, "\"image\":\"localhost/torchkeeper/trainer-cuda:dev\""));
}

static void test_gpu_samples_have_a_gpu_for_each_rank(void **state)
{
    (void)state;
    expect_gpus(SAMPLES "/mnist-gpu.yaml", 1);
    expect_gpus(SAMPLES "/gpt2.yaml", 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_sample_is_taken),
        cmocka_unit_test(test_gpu_samples_have_a_gpu_for_each_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
