/* test_hash.c - spec.hash: it changes with what shapes pods, and with nothing else. */
#include "jsontext.h"
#include "operator/api/trainjob.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

#define META "'metadata':{'name':'j','namespace':'n','uid':'u','resourceVersion':'1'}"
#define POD "'template':{'spec':{'containers':[{'name':'c'}]}}"
#define WITH(members) "{" META ",'spec':{'replicaSpecs':[{'type':'node'," POD "}]," members "}}"

static struct trainjob *decode(const char *text)
{
    struct err err;
    struct trainjob *job = trainjob_decode(jsontext_parse(text), &err);

    assert_non_null(job);
    return job;
}

static void test_follows_pods(void **state)
{
    cleanup_trainjob struct trainjob *a = decode(WITH("'suspend':false"));
    cleanup_trainjob struct trainjob *b = decode(WITH("'runPolicy':{'backoffLimit':1}"));
    cleanup_trainjob struct trainjob *c = decode(WITH("'torchrunConfig':{'enabled':true}"));

    (void)state;
    assert_string_equal(a->spec.hash, b->spec.hash);
    assert_string_not_equal(a->spec.hash, c->spec.hash);
}

#define RESUME "'runMode':{'pause':{'resumeSpecs':[{'type':'node','args':['x']}]}}"

/* resumeSpecs shape pods from the first pause on, which is known while it still lasts. */
static void test_follows_mode(void **state)
{
    static const char TEMPLATE[] =
        "{" META ",'spec':{'replicaSpecs':[{'type':'node'," POD "}]%s,'status':{%s}}";
    static const struct {
        const char *spec, *status;
        int like; /* the row with the same hash */
    } ROWS[] = {
        {"}", "", 0},
        {"," RESUME "}", "", 0},
        {"," RESUME "}", "'conditions':[{'type':'Paused','status':'True'}]", 0},
        {"," RESUME "}", "'attempt':1,'conditions':[{'type':'Paused','status':'True'}]", 3},
        {"," RESUME "}", "'attempt':1,'resumeCount':1", 3},
        {",'runMode':{'debug':{'enabled':true}}}", "", 5},
    };
    char hashes[ARRAY_LEN(ROWS)][17];
    char text[640];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        snprintf(text, sizeof(text), TEMPLATE, ROWS[i].spec, ROWS[i].status);
        cleanup_trainjob struct trainjob *job = decode(text);
        assert_null(job->spec_error);
        memcpy(hashes[i], job->spec.hash, sizeof(hashes[i]));
        assert_string_equal(hashes[i], hashes[ROWS[i].like]);
    }
    assert_string_not_equal(hashes[0], hashes[3]);
    assert_string_not_equal(hashes[0], hashes[5]);
}

/* Jobs that run have pods with these hashes: another version of the operator must find the same. */
static void test_stays_over_upgrades(void **state)
{
    static const char TEMPLATE[] =
        "{" META ",'spec':{'replicaSpecs':[{'type':'node','replicas':2,'template':{'spec':{'containers':[{'"
        "name':'c','image':'i','ports':[{'containerPort':80}],'tty':true,'env':null,'x':0.5,'y':1e3}"
        "]}}}],%s},'status':{%s}}";
    static const struct {
        const char *spec, *status, *hash;
    } ROWS[] = {
        {"'suspend':false", "", "902b7e6cc7bb4003"},
        /* as the API server adds them */
        {"'elastic':{'expectedReplicas':0}", "", "902b7e6cc7bb4003"},
        {"'torchrunConfig':{'enabled':true,'maxRestarts':1,'procPerNode':1,'rdzvBackend':'c10d'}", "",
         "02b78de03d94eba7"},
        {"'torchrunConfig':{'enabled':true,'maxRestarts':1,'procPerNode':1,'rdzvBackend':'c10d'},'elastic':{'"
         "enabled':true,'minReplicas':1,'maxReplicas':4,'expectedReplicas':0}",
         "", "543a2e2778723a78"},
        {"'runMode':{'debug':{'enabled':true}}", "", "c9ac00064cbd24f3"},
        {RESUME, "'attempt':1,'resumeCount':1", "f3ade3a2de82677d"},
    };
    char text[1024];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        snprintf(text, sizeof(text), TEMPLATE, ROWS[i].spec, ROWS[i].status);
        cleanup_trainjob struct trainjob *job = decode(text);
        if (job->spec_error)
            fail_msg("%s", job->spec_error);
        assert_string_equal(job->spec.hash, ROWS[i].hash);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follows_pods),
        cmocka_unit_test(test_follows_mode),
        cmocka_unit_test(test_stays_over_upgrades),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
