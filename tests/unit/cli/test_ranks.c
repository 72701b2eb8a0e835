/* test_ranks.c - which pods `--rank` chooses. */
#include "test.h"

#include "cli/ranks.h"
#include "common/json.h"

#include <stdio.h>
#include <string.h>

static struct trainjob *job_of(const char *torchrun)
{
    char text[1024];
    struct err err;

    snprintf(
        text, sizeof(text),
        "{\"metadata\":{\"name\":\"j\",\"namespace\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"1\"},\"spec\":"
        "{%s"
        "\"replicaSpecs\":[{\"type\":\"master\",\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\","
        "\"image\":\"i\"}]}}},{\"type\":\"worker\",\"replicas\":3,\"template\":{\"spec\":{\"containers\":"
        "[{\"name\":\"c\",\"image\":\"i\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":4}}}]}}}]}}",
        torchrun);
    struct trainjob *job = trainjob_decode(json_parse(text, strlen(text), &err), &err);
    assert_non_null(job);
    assert_null(job->spec_error);
    return job;
}

/* "m0 w1 w2": which pods have some of these ranks. */
static void expect(const char *torchrun, const char *text, const char *want)
{
    struct trainjob *job = job_of(torchrun);
    struct ranks r;
    struct err err;
    char got[64] = "";
    int n = 0;

    assert_int_equal(ranks_parse(text, &r, &err), 0);
    for (int i = 0; i < 1; i++)
        if (ranks_have_pod(&r, &job->spec, "master", i) && ++n)
            strcat(got, "m");
    for (int i = 0; i < 3; i++)
        if (ranks_have_pod(&r, &job->spec, "worker", i) && ++n)
            strcat(got, (const char *[]){"0", "1", "2"}[i]);
    assert_string_equal(got, want);
    assert_int_equal(ranks_count_pods(&r, &job->spec), n);
    assert_false(ranks_have_pod(&r, &job->spec, "other", 0));
    trainjob_free(job);
}

static void test_pods(void **ctx)
{
    (void)ctx;
    expect("", "0", "m");
    expect("", "1,3", "02");
    expect("", "4", "");
    expect("\"torchrunConfig\":{\"enabled\":true,\"procPerNode\":\"2\"},", "1-3", "m0");
    expect("\"torchrunConfig\":{\"enabled\":true,\"procPerNode\":\"gpu\"},", "4,5", "01");
    expect("\"torchrunConfig\":{\"enabled\":true,\"procPerNode\":\"cpu\"},", "1,3",
           "02"); /* GPUs do not count */
    expect("\"torchrunConfig\":{\"enabled\":true,\"procPerNode\":\"4\"},\"runMode\":{\"debug\":{\"enabled\":"
           "true}},",
           "1,3", "02");
}

static void test_refused(void **ctx)
{
    static const char *const BAD[] = {"", "x", "1,", "3-1", "1-2-3", "-1", "99999999999"};
    struct ranks r;
    struct err err;

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        assert_int_equal(ranks_parse(BAD[i], &r, &err), -1);
        assert_non_null(strstr(err.msg, "--rank: expected ranks such as 0,2,5-7"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pods), cmocka_unit_test(test_refused)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
