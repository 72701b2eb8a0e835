/* test_samples.c - the jobs under deploy/samples are such as the operator takes, and ask for what they say. */
#include "common/cleanup.h"
#include "common/fsutil.h"
#include "operator/api/trainjob.h"
#include "test.h"
#include "yamldoc.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define SAMPLES TK_SOURCE_DIR "/deploy/samples"

/* The document of that kind in a file of several; yamldoc_read takes one. */
static cJSON *document(const char *path, const char *kind)
{
    cleanup_buf struct buf text = BUF_INIT(1 << 20);
    char part[] = "/tmp/sample-XXXXXX";
    cleanup_close int fd = mkstemp(part);
    cJSON *found = NULL;
    struct err err = {0};

    assert_true(fd >= 0);
    assert_int_equal(fs_read(path, &text, &err), 0);
    assert_int_equal(buf_append(&text, "", 1, &err), 0);
    for (char *at = text.data, *next; at && !found; at = next) {
        next = strstr(at, "\n---\n");
        if (next) {
            *next = '\0';
            next += strlen("\n---\n");
        }
        assert_int_equal(fs_write_atomic(part, at, strlen(at), &err), 0);
        cJSON *doc = yamldoc_read(part, &err);
        if (!doc)
            fail_msg("%s: %s", path, err.msg);
        if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(doc, "kind")), kind) == 0)
            found = doc;
        else
            cJSON_Delete(doc);
    }
    unlink(part);
    if (!found)
        fail_msg("%s: no %s in it", path, kind);
    return found;
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

/* The container's arguments and image are for people to copy: what they promise must stand in them. */
static const cJSON *container(const cJSON *job)
{
    const cJSON *replicas = cJSON_GetObjectItem(cJSON_GetObjectItem(job, "spec"), "replicaSpecs");
    const cJSON *template = cJSON_GetObjectItem(cJSON_GetArrayItem(replicas, 0), "template");

    return cJSON_GetArrayItem(cJSON_GetObjectItem(cJSON_GetObjectItem(template, "spec"), "containers"), 0);
}

static const char *behind(const cJSON *args, const char *option)
{
    for (int i = 0; i + 1 < cJSON_GetArraySize(args); i++)
        if (strcmp(cJSON_GetStringValue(cJSON_GetArrayItem(args, i)), option) == 0)
            return cJSON_GetStringValue(cJSON_GetArrayItem(args, i + 1));
    fail_msg("no %s", option);
    return NULL;
}

/* Four ranks to a pod. */
static void expect_gpus(const char *path, int pods)
{
    cleanup_trainjob struct trainjob *job = sample(path);
    cJSON *doc = document(path, "PyTorchTrainingJob");
    const cJSON *c = container(doc);

    assert_int_equal(job->spec.gpus, 4 * pods);
    assert_int_equal(job->spec.pods, pods);
    assert_string_equal(
        cJSON_GetStringValue(cJSON_GetObjectItem(
            cJSON_GetObjectItem(cJSON_GetObjectItem(doc, "spec"), "torchrunConfig"), "procPerNode")),
        "4");
    assert_string_equal(behind(cJSON_GetObjectItem(c, "args"), "--backend"), "nccl");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(c, "image")),
                        "localhost/torchkeeper/trainer-cuda:dev");
    cJSON_Delete(doc);
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
