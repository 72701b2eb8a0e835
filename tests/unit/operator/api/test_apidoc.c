/* test_apidoc.c - docs/api.md lists every field of the CRD, each with its description. GOLDEN_UPDATE=1 writes it. */
#include "common/fsutil.h"
#include "schema.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

static void put_default(struct buf *out, const cJSON *schema)
{
    struct err err;
    const cJSON *words = json_child(schema, "enum");
    const cJSON *value = json_child(schema, "default");
    const cJSON *word;
    const char *between = "";

    if (!words)
        assert_int_equal(buf_puts(out, schema_type(schema), &err), 0);
    cJSON_ArrayForEach(word, words)
    {
        assert_int_equal(buf_printf(out, &err, "%s%s", between, word->valuestring), 0);
        between = ", ";
    }
    if (!value)
        return;
    assert_int_equal(buf_puts(out, "; ", &err), 0);
    if (cJSON_IsString(value))
        assert_int_equal(buf_puts(out, value->valuestring, &err), 0);
    else
        assert_int_equal(json_write(value, out, &err), 0);
}

static void put_row(void *ctx, const struct schema_field *f)
{
    struct buf *out = ctx;
    struct err err;
    const char *description = json_str(f->schema, "description");
    char path[SCHEMA_PATH_BYTES];
    const cJSON *member;

    schema_path(f, "[]", path);
    cJSON_ArrayForEach(member, f->schema)
    {
        if (cJSON_IsNull(member)) /* {description: one, two}: the API server knows no member "two" */
            fail_msg("%s: what is \"%s\"? A description with a comma in braces needs quotes", path,
                     member->string);
    }
    if (f->keys[f->n - 1] == NULL && !description)
        return; /* an item of a list of words: its list describes it */
    if (!description)
        fail_msg("%s has no description in the CRD", path);
    if (f->n == 1 || f->keys[f->n - 1] == NULL)
        return;
    assert_int_equal(buf_printf(out, &err, "| `%s` | ", path), 0);
    put_default(out, f->schema);
    assert_int_equal(buf_puts(out, " | ", &err), 0);
    for (const char *c = description; *c; c++) /* <job> is no tag, | no end of the cell */
        assert_int_equal(*c == '<'   ? buf_puts(out, "&lt;", &err)
                         : *c == '|' ? buf_puts(out, "\\|", &err)
                                     : buf_printf(out, &err, "%c", *c),
                         0);
    assert_int_equal(buf_puts(out, " |\n", &err), 0);
}

static void test_docs_list_each_field(void **state)
{
    static const char PATH[] = TK_SOURCE_DIR "/docs/api.md";
    static const char *const PARTS[] = {"spec", "status"};
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    cleanup_buf struct buf have = BUF_INIT(1 << 20);
    struct err err;

    assert_int_equal(
        buf_puts(&want,
                 "# PyTorchTrainingJob: every field\n\n"
                 "`apiVersion: batch.tensorstack.dev/v1beta1`, short name `ptj`. Written from "
                 "`crds/pytorchtrainingjob.yaml` by\n"
                 "`GOLDEN_UPDATE=1 <build>/tests/unit_operator_api_test_apidoc`; `kubectl explain ptj "
                 "--recursive` prints the same.\n",
                 &err),
        0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(buf_printf(&want, &err,
                                    "\n## %s\n\n| Field | Type; default | Meaning |\n|---|---|---|\n",
                                    PARTS[i]),
                         0);
        schema_walk(*state, PARTS[i], put_row, &want);
    }
    if (getenv("GOLDEN_UPDATE"))
        assert_int_equal(fs_write_atomic(PATH, want.data, want.len, &err), 0);
    assert_int_equal(fs_read(PATH, &have, &err), 0);
    if (strcmp(buf_str(&want), buf_str(&have)) != 0)
        fail_msg("docs/api.md is not what the CRD says; GOLDEN_UPDATE=1 writes it anew");
}

int main(void)
{
    cleanup_json cJSON *crd = schema_read(TK_SOURCE_DIR "/crds/pytorchtrainingjob.yaml");
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_docs_list_each_field, crd)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
