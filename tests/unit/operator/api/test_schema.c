/* test_schema.c - the CRD, the decoder, and the encoder of the status agree.
 *
 * Nothing here names a field: the schema's fields come from the CRD, the decoder's words from its source.
 */
#include "common/fsutil.h"
#include "common/text.h"
#include "operator/api/trainjob.h"
#include "schema.h"
#include "test.h"
#include "yamldoc.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define REFUSED "not supported by this version"

/* Everything that is refused when it is not there stands in it. */
#define BASE                                                                                                 \
    "{\"metadata\":{\"name\":\"j\",\"namespace\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"1\"},\"spec\":{"  \
    "\"replicaSpecs\":[{\"type\":\"node\",\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\"}]}}}],"    \
    "\"torchrunConfig\":{\"enabled\":true,\"maxRestarts\":1},"                                               \
    "\"tensorboardSpec\":{\"logDir\":{\"pvc\":[{\"name\":\"c\"}]}}}}"

static cJSON *base(void)
{
    struct err err;
    cJSON *doc = json_parse(BASE, strlen(BASE), &err);

    assert_non_null(doc);
    return doc;
}

/* With what a field of `elastic` needs beside it. */
static cJSON *base_for(const struct schema_field *f)
{
    cJSON *doc = base();
    cJSON *spec = cJSON_GetObjectItem(doc, "spec");

    if (f->n > 1 && f->keys[1] && strcmp(f->keys[1], "elastic") == 0) {
        cJSON *limits = cJSON_AddObjectToObject(spec, "elastic");
        cJSON_AddNumberToObject(limits, "minReplicas", 1);
        cJSON_AddNumberToObject(limits, "maxReplicas", 2);
        cJSON_AddNumberToObject(cJSON_GetArrayItem(cJSON_GetObjectItem(spec, "replicaSpecs"), 0), "replicas",
                                2);
    }
    return doc;
}

/* With `value` (taken) in that field. */
static struct trainjob *job_with(const cJSON *crd, const struct schema_field *f, cJSON *value)
{
    struct err err;
    cJSON *doc = base_for(f);

    schema_put(doc, crd, f, value);
    struct trainjob *job = trainjob_decode(doc, &err);
    assert_non_null(job);
    return job;
}

/* The decoder's error for a spec with `value` (taken) in that field; "" when it accepts it. */
static void complaint(const cJSON *crd, const struct schema_field *f, cJSON *value, char *out, size_t size)
{
    cleanup_trainjob struct trainjob *job = job_with(crd, f, value);

    snprintf(out, size, "%s", job->spec_error ? job->spec_error : "");
}

/* "<path>: <what>...", about this very field and no other. */
static bool blames(const char *said, const char *path, const char *what)
{
    size_t len = strlen(path);

    return strncmp(said, path, len) == 0 && strncmp(said + len, ": ", 2) == 0 &&
           strncmp(said + len + 2, what, strlen(what)) == 0;
}

/* The decoder blames the field for the value (taken), which is `what`. */
static void expect_blame(const cJSON *crd, const struct schema_field *f, cJSON *value, const char *words,
                         const char *what)
{
    char path[SCHEMA_PATH_BYTES];
    char said[512];

    schema_path(f, "[0]", path);
    complaint(crd, f, value, said, sizeof(said));
    if (!blames(said, path, words))
        fail_msg("%s: %s gave \"%s\"", path, what, said);
}

static cJSON *wrong_value(const cJSON *schema)
{
    const char *type = schema_type(schema);

    return strcmp(type, "string") == 0 || strcmp(type, "int-or-string") == 0 ? cJSON_CreateObject()
                                                                             : cJSON_CreateString("x y");
}

static void check_type(void *ctx, const struct schema_field *f)
{
    if (f->n > 1)
        expect_blame(ctx, f, wrong_value(f->schema), schema_refuses(f->schema) ? REFUSED : "expected ",
                     "a wrong type, which the schema refuses,");
}

static void test_decoder_reads_each_field_of_the_schema(void **state)
{
    schema_walk(*state, "spec", check_type, *state);
}

/* What a decoded spec takes from the fields that have a default. A default whose field is missing here is found out:
 * see check_default. */
static void shape(const struct trainjob_spec *s, char *out, size_t size)
{
    const struct replica_spec *r = &s->replica_specs[0];

    snprintf(out, size, "%d %d %d %s %d %d %d %d", r->replicas, (int)r->restart_policy,
             s->torchrun.max_restarts, s->torchrun.proc_per_node, (int)s->torchrun.rdzv_backend,
             s->run_policy.backoff_limit, (int)s->run_policy.cleanup_policy, s->elastic.expected);
}

static void shape_with(const cJSON *crd, const struct schema_field *f, cJSON *value, char *out, size_t size)
{
    cleanup_trainjob struct trainjob *job = job_with(crd, f, value);

    if (job->spec_error)
        fail_msg("%s", job->spec_error);
    shape(&job->spec, out, size);
}

/* Valid, and not the default; NULL where that is an empty object, which its members' defaults fill. */
static cJSON *another_value(const cJSON *schema, const cJSON *value)
{
    const cJSON *word;

    if (cJSON_IsObject(value) && !value->child)
        return NULL;
    cJSON_ArrayForEach(word, json_child(schema, "enum"))
    {
        if (strcmp(word->valuestring, value->valuestring) != 0)
            return cJSON_CreateString(word->valuestring);
    }
    assert_true(cJSON_IsNumber(value));
    return cJSON_CreateNumber(value->valuedouble + 1);
}

static void check_default(void *ctx, const struct schema_field *f)
{
    const cJSON *value = json_child(f->schema, "default");
    char path[SCHEMA_PATH_BYTES];
    char absent[160];
    char given[160];
    char other[160];

    if (!value)
        return;
    schema_path(f, "[0]", path);
    shape_with(ctx, f, cJSON_CreateNull(), absent, sizeof(absent));
    shape_with(ctx, f, cJSON_Duplicate(value, true), given, sizeof(given));
    if (strcmp(absent, given) != 0)
        fail_msg("%s: the schema's default gave \"%s\", and without the field it is \"%s\"", path, given,
                 absent);
    cJSON *another = another_value(f->schema, value);
    if (!another)
        return;
    shape_with(ctx, f, another, other, sizeof(other));
    if (strcmp(given, other) == 0)
        fail_msg("%s has a default, and shape() does not look at it", path);
}

static void test_defaults_are_the_same(void **state)
{
    schema_walk(*state, "spec", check_default, *state);
}

/* A default is in the object that the hash of the template is made from: one more in these parts would give every job that
 * runs another hash. A new field there means its default when it is absent. */
static void check_hashed_default(void *ctx, const struct schema_field *f)
{
    static const char *const KNOWN[] = {"spec.torchrunConfig.maxRestarts", "spec.torchrunConfig.procPerNode",
                                        "spec.torchrunConfig.rdzvBackend"};
    static const char *const HASHED[] = {"spec.torchrunConfig", "spec.replicaSpecs[0].template",
                                         "spec.runMode"};
    char path[SCHEMA_PATH_BYTES];
    int *n_known = ctx;
    bool hashed = false;
    bool known = false;

    schema_path(f, "[0]", path);
    for (size_t i = 0; i < ARRAY_LEN(HASHED); i++)
        hashed |= strncmp(path, HASHED[i], strlen(HASHED[i])) == 0;
    if (!hashed || !json_child(f->schema, "default"))
        return;
    for (size_t i = 0; i < ARRAY_LEN(KNOWN); i++)
        known |= strcmp(path, KNOWN[i]) == 0;
    if (!known)
        fail_msg("%s has a default, and the template's hash covers it", path);
    ++*n_known;
}

static void test_no_new_default_is_hashed(void **state)
{
    int n_known = 0;

    schema_walk(*state, "spec", check_hashed_default, &n_known);
    assert_int_equal(n_known, 3);
}

/* Longer by one than the schema lets a string or a list be; NULL without such a limit. */
static cJSON *too_long(const cJSON *schema)
{
    const cJSON *chars = json_child(schema, "maxLength");
    const cJSON *items = json_child(schema, "maxItems");
    char text[8192];

    if (items) {
        cJSON *list = cJSON_CreateArray();
        for (int i = 0; i <= (int)items->valuedouble; i++)
            cJSON_AddItemToArray(list, schema_sample(json_child(schema, "items"), false));
        return list;
    }
    if (!chars)
        return NULL;
    assert_true(chars->valuedouble + 2 < (double)sizeof(text));
    snprintf(text, sizeof(text), "%0*d", (int)chars->valuedouble + 1, 0);
    return cJSON_CreateString(text);
}

static void check_length(void *ctx, const struct schema_field *f)
{
    cJSON *value = too_long(f->schema);

    if (value)
        expect_blame(ctx, f, value, "expected ", "longer by one than the schema's limit");
}

static void test_lengths_are_bounded(void **state)
{
    schema_walk(*state, "spec", check_length, *state);
}

static void check_limits(void *ctx, const struct schema_field *f)
{
    char path[SCHEMA_PATH_BYTES];
    char said[512];
    static const char *const LIMITS[] = {"minimum", "maximum"};
    const cJSON *words = json_child(f->schema, "enum");
    const cJSON *word;

    schema_path(f, "[0]", path);
    for (int i = 0; i < 2; i++) {
        const cJSON *limit = json_child(f->schema, LIMITS[i]);
        if (!limit)
            continue;
        expect_blame(ctx, f, cJSON_CreateNumber(limit->valuedouble + (i ? 1 : -1)), "expected ", LIMITS[i]);
    }
    if (!words)
        return;
    cJSON_ArrayForEach(word, words)
    {
        complaint(ctx, f, cJSON_CreateString(word->valuestring), said, sizeof(said));
        if (strstr(said, "expected one of"))
            fail_msg("%s: the schema's word %s gave \"%s\"", path, word->valuestring, said);
    }
    expect_blame(ctx, f, cJSON_CreateString("no-such-word"), "expected one of ",
                 "a word outside of the schema's");
}

static void test_limits_and_words_are_the_same(void **state)
{
    schema_walk(*state, "spec", check_limits, *state);
}

/* One field name that the decoder's source mentions, tried in each object of the schema that lacks it. */
struct intruder {
    const cJSON *crd;
    char word[64];
    int tried;
};

static void check_unknown(void *ctx, const struct schema_field *f)
{
    struct intruder *in = ctx;
    const cJSON *properties = json_child(f->schema, "properties");
    struct schema_field inside = *f;

    if (f->last || !properties || cJSON_HasObjectItem(properties, in->word))
        return;
    inside.keys[inside.n++] = in->word;
    expect_blame(in->crd, &inside, cJSON_CreateTrue(), "unknown field", "a field that is not in the schema");
    in->tried++;
}

/* The next literal of the source that may name a field. */
static bool next_word(const char **at, char word[64])
{
    for (const char *quote = strchr(*at, '"'); quote; quote = strchr(quote + 1, '"')) {
        size_t len = strspn(quote + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
        if (len == 0 || len >= 64 || quote[1 + len] != '"' || !islower((unsigned char)quote[1]))
            continue;
        snprintf(word, 64, "%.*s", (int)len, quote + 1);
        *at = quote + len + 2;
        return true;
    }
    return false;
}

static void test_decoder_reads_nothing_else(void **state)
{
    static const char *const SOURCES[] = {"trainjob_spec.c", "trainjob_policy.c", "trainjob_tensorboard.c",
                                          "trainjob_runmode.c", "trainjob_elastic.c"};
    struct intruder in = {.crd = *state};
    struct err err;

    for (size_t i = 0; i < ARRAY_LEN(SOURCES); i++) {
        cleanup_buf struct buf text = BUF_INIT(1 << 20);
        char path[512];
        snprintf(path, sizeof(path), TK_SOURCE_DIR "/operator/api/%s", SOURCES[i]);
        assert_int_equal(fs_read(path, &text, &err), 0);
        int words = 0;
        for (const char *at = buf_str(&text); next_word(&at, in.word); words++)
            schema_walk(*state, "spec", check_unknown, &in);
        assert_true(words > 5);
    }
    assert_true(in.tried > 500);
}

/* Each member that one of the two has, the other has too. */
static void same_shape(const cJSON *schema, const cJSON *value, const char *path)
{
    const cJSON *properties = json_child(schema, "properties");
    const cJSON *items = json_child(schema, "items");
    const cJSON *child;
    char below[SCHEMA_PATH_BYTES];

    if (items) {
        snprintf(below, sizeof(below), "%s[]", path);
        if (cJSON_GetArraySize(value) < 1)
            fail_msg("%s: the status was encoded without items", path);
        same_shape(items, value->child, below);
    }
    cJSON_ArrayForEach(child, properties)
    {
        const cJSON *v = json_child(value, child->string);
        snprintf(below, sizeof(below), "%s.%s", path, child->string);
        if (!v)
            fail_msg("%s is in the schema and never written", below);
        same_shape(child, v, below);
    }
    if (properties)
        cJSON_ArrayForEach(child, value)
        {
            if (!cJSON_HasObjectItem(properties, child->string))
                fail_msg("%s.%s is written and not in the schema", path, child->string);
        }
}

/* kubectl apply keeps the whole of it in an annotation, and needs room for the next one. */
static void test_crd_is_small(void **state)
{
    cleanup_buf struct buf text = BUF_INIT(100000);
    struct err err;

    (void)state;
    assert_int_equal(fs_read(TK_SOURCE_DIR "/crds/pytorchtrainingjob.yaml", &text, &err), 0);
}

static void test_status_is_read_and_written_whole(void **state)
{
    const cJSON *schema = schema_part(*state, "status");
    cleanup_arena struct arena arena = {0};
    struct jobstatus status;
    cleanup_json cJSON *full = schema_sample(schema, true);
    cJSON *condition = cJSON_GetArrayItem(cJSON_GetObjectItem(full, "conditions"), 0);

    /* Which conditions there are, the schema leaves open. */
    cJSON_ReplaceItemInObject(condition, "type", cJSON_CreateString("Running"));
    jobstatus_decode(full, &arena, &status);
    cleanup_json cJSON *encoded = jobstatus_encode(&status);
    same_shape(schema, encoded, "status");
}

/* Somebody who sees Pending has to see why, without -o wide. */
static void test_columns(void **state)
{
    const cJSON *version =
                    cJSON_GetArrayItem(json_find(*state, (const char *[]){"spec", "versions", NULL}), 0),
                *column;
    char narrow[128] = "", wide[128] = "";

    cJSON_ArrayForEach(column, cJSON_GetObjectItem(version, "additionalPrinterColumns"))
    {
        const bool always = !cJSON_GetObjectItem(column, "priority");
        text_add(always ? narrow : wide, 128, "%s ", json_str(column, "name"));
    }
    assert_string_equal(narrow, "Phase Ready Progress Restarts Reason Age ");
    assert_string_equal(wide, "GPUs Last-Exit TensorBoard ");
}

int main(void)
{
    cleanup_json cJSON *crd = schema_read(TK_SOURCE_DIR "/crds/pytorchtrainingjob.yaml");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_decoder_reads_each_field_of_the_schema, crd),
        cmocka_unit_test_prestate(test_limits_and_words_are_the_same, crd),
        cmocka_unit_test_prestate(test_lengths_are_bounded, crd),
        cmocka_unit_test_prestate(test_defaults_are_the_same, crd),
        cmocka_unit_test_prestate(test_no_new_default_is_hashed, crd),
        cmocka_unit_test_prestate(test_decoder_reads_nothing_else, crd),
        cmocka_unit_test_prestate(test_columns, crd),
        cmocka_unit_test(test_crd_is_small),
        cmocka_unit_test_prestate(test_status_is_read_and_written_whole, crd),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
