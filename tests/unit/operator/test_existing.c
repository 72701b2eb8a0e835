/* test_existing.c - whose object has the name. */
#include "jsontext.h"
#include "operator/existing.h"
#include "test.h"

#define OWNED                                                                                                \
    "'ownerReferences':[{'apiVersion':'" TRAINJOB_API_VERSION "','kind':'" TRAINJOB_KIND                     \
    "','uid':'job','controller':true}]"
#define LABELS(attempt)                                                                                      \
    "'labels':{'batch.tensorstack.dev/job':'j','batch.tensorstack.dev/attempt':" attempt "}"
/* The pod of an attempt and a restart within it. */
#define RESTART(attempt, restart)                                                                            \
    "'labels':{'batch.tensorstack.dev/job':'j','batch.tensorstack.dev/attempt':" attempt                     \
    ",'batch.tensorstack.dev/restart':" restart "}"

#define KIND "'apiVersion':'" TRAINJOB_API_VERSION "','kind':'" TRAINJOB_KIND "'"
#define NAMESAKE(kind, name, controller)                                                                     \
    "{'metadata':{'ownerReferences':[{" kind ",'name':'" name "','uid':'earlier','controller':" controller   \
    "}]}}"

struct row {
    const char *there;
    enum child_kind child;
    enum existing want;
};

static const struct row ROWS[] = {
    {"{'metadata':{" OWNED "," LABELS("'1'") "}}", CHILD_POD, EXISTING_OLDER},
    {"{'metadata':{" OWNED "," LABELS("'0'") "}}", CHILD_POD, EXISTING_OLDER},
    {"{'metadata':{" OWNED "," LABELS("'2'") "}}", CHILD_POD, EXISTING_NEWER},
    {"{'metadata':{" OWNED "," RESTART("'1'", "'1'") "}}", CHILD_POD, EXISTING_OLDER},
    {"{'metadata':{" OWNED "," RESTART("'1'", "'2'") "}}", CHILD_POD, EXISTING_WANTED},
    {"{'metadata':{" OWNED "," RESTART("'1'", "'3'") "}}", CHILD_POD, EXISTING_NEWER},
    {"{'metadata':{" OWNED "," RESTART("'0'", "'3'") "}}", CHILD_POD, EXISTING_OLDER},
    {"{'metadata':{" OWNED "," RESTART("'2'", "'0'") "}}", CHILD_POD, EXISTING_NEWER},
    {"{'metadata':{" OWNED "," LABELS("'x'") "}}", CHILD_POD, EXISTING_OLDER},
    {"{'metadata':{" OWNED "}}", CHILD_POD, EXISTING_OLDER},
    {"{'metadata':{" OWNED ",'labels':{'batch.tensorstack.dev/attempt':'1'}}}", CHILD_POD, EXISTING_OLDER},
    {"{'metadata':{" OWNED "," LABELS("'1'") ",'deletionTimestamp':'2026-01-01T00:00:00Z'}}", CHILD_POD,
     EXISTING_LEAVING},
    {"{'metadata':{" LABELS("'1'") "}}", CHILD_POD, EXISTING_FOREIGN},
    {"{'metadata':{'ownerReferences':[{'uid':'job'}]," LABELS("'1'") "}}", CHILD_POD, EXISTING_FOREIGN},
    {"{'metadata':{'ownerReferences':[{'uid':'other','controller':true}]}}", CHILD_SERVICE, EXISTING_FOREIGN},
    {"{'metadata':{" OWNED "}}", CHILD_SERVICE, EXISTING_OLDER},
    {"{'metadata':{" OWNED "," LABELS("'1'") "}}", CHILD_SERVICE, EXISTING_WANTED},
    {"{}", CHILD_SERVICE, EXISTING_FOREIGN},
    /* someone else's, but it goes */
    {"{'metadata':{'deletionTimestamp':'2026-01-01T00:00:00Z'}}", CHILD_POD, EXISTING_LEAVING},
    /* of a deleted job of the same name */
    {NAMESAKE(KIND, "j", "true"), CHILD_POD, EXISTING_LEAVING},
    {NAMESAKE(KIND, "j", "true"), CHILD_SERVICE, EXISTING_LEAVING},
    {NAMESAKE(KIND, "j2", "true"), CHILD_POD, EXISTING_FOREIGN},
    {NAMESAKE(KIND, "j", "false"), CHILD_POD, EXISTING_FOREIGN},
    {NAMESAKE("'apiVersion':'batch/v1','kind':'" TRAINJOB_KIND "'", "j", "true"), CHILD_POD,
     EXISTING_FOREIGN},
    {NAMESAKE("'apiVersion':'" TRAINJOB_API_VERSION "','kind':'Job'", "j", "true"), CHILD_POD,
     EXISTING_FOREIGN},
    {NAMESAKE("'kind':'" TRAINJOB_KIND "'", "j", "true"), CHILD_POD, EXISTING_FOREIGN},
};

static void test_rows(void **state)
{
    cleanup_free char *body = jsontext("{'metadata':{" RESTART("'1'", "'2'") "}}");

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        const struct action act = {.child = ROWS[i].child, .body = body};
        cleanup_json cJSON *there = jsontext_parse(ROWS[i].there);
        if (existing_judge(&act, there, "j", "job") != ROWS[i].want)
            fail_msg("row %zu: got %d", i, existing_judge(&act, there, "j", "job"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
