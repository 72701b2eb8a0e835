/* test_yaml_write.c - what yaml_write writes: how it looks, and that the same values are read back.
 *
 * usage: test_yaml_write                 the tests
 *        test_yaml_write FOLDER NUMBER   write FOLDER/i.json and FOLDER/i.yaml of random trees, for another reader
 */
#include "test.h"

#include "common/fsutil.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/random.h"
#include "common/yaml.h"
#include "common/yaml_write.h"
#include "seed.h"

#include <stdlib.h>
#include <string.h>

static void expect(const char *json, const char *yaml)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 16);
    struct err err = {0};
    cleanup_json cJSON *tree = json_parse(json, strlen(json), &err);

    assert_non_null(tree);
    assert_int_equal(yaml_write(tree, &out, &err), 0);
    assert_string_equal(buf_str(&out), yaml);
}

static void writes_for_people(void **state)
{
    (void)state;
    expect("{\"a\":{\"b\":[1,{\"c\":\"d\",\"e\":[]}],\"f\":{}},\"g\":null,\"h\":true}",
           "a:\n  b:\n  - 1\n  - c: d\n    e: []\n  f: {}\ng: null\nh: true\n");
    expect("{\"args\":[\"train.py\",\"--lr=0.1\",\"-c\",\"import os\\nprint(1)\\n\"]}",
           "args:\n- train.py\n- --lr=0.1\n- -c\n- |\n  import os\n  print(1)\n");
    expect("[\"2Gi\",\"100m\",\"img:1\",\"a b\"]", "- 2Gi\n- 100m\n- img:1\n- a b\n");
}

static void quotes_what_would_be_read_as_something_else(void **state)
{
    (void)state;
    static const char *const WORDS[] = {"",     "null", "~",    "True", "no",    "Y",   "on",   "1",
                                        "-1.5", "0x1F", "0o17", "1_0",  "12:30", "1e3", ".5",   "2026-01-01",
                                        ".NaN", "+1",   "<<",   "=",    "-.inf", "017", "0b11", "190:20:30"};
    char yaml[64];

    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++) {
        cleanup_buf struct buf out = BUF_INIT(256);
        struct err err = {0};
        cleanup_json cJSON *tree = cJSON_CreateArray();
        cJSON_AddItemToArray(tree, cJSON_CreateString(WORDS[i]));
        assert_int_equal(yaml_write(tree, &out, &err), 0);
        snprintf(yaml, sizeof(yaml), "- '%s'\n", WORDS[i]);
        assert_string_equal(buf_str(&out), yaml);
    }
    expect("{\"y\":\"# no comment\"}", "'y': '# no comment'\n");
    expect("[\"caf\\u00e9\",\"a b\"]", "- caf\xc3\xa9\n- a b\n");
    /* What a terminal would turn round, or hide. */
    expect("[\"caf\\u00e9\",\"a\\u202eb\"]", "- \"caf\\xE9\"\n- \"a\\u202Eb\"\n");
    expect("{\"\\ufeffk\":\"a\\u00ad\\nb\"}", "\"\\uFEFFk\": \"a\\xAD\\nb\"\n");
    expect("[\"a\\rb\\n\",\"\\u0001\"]", "- \"a\\rb\\n\"\n- \"\\x01\"\n");
}

static void writes_numbers_that_every_reader_takes_for_numbers(void **state)
{
    (void)state;
    expect("[1e300,0.5,1000000000000000,-3,2.5E-7,9007199254740993]",
           "- 1.0e+300\n- 0.5\n- 1000000000000000\n- -3\n- 2.5e-07\n- 9007199254740992\n");
}

static void refuses(void **state)
{
    (void)state;
    cleanup_json cJSON *bytes = cJSON_CreateString("\xff");
    cleanup_json cJSON *deep = cJSON_CreateArray();
    cleanup_json cJSON *text = cJSON_CreateString("longer than four bytes");
    cJSON *at = deep;
    struct err err = {0};
    cleanup_buf struct buf out = BUF_INIT(1 << 16);
    cleanup_buf struct buf small = BUF_INIT(4);

    for (int i = 0; i < YAML_WRITE_DEPTH_MAX; i++) {
        cJSON *next = cJSON_CreateArray();
        cJSON_AddItemToArray(at, next);
        at = next;
    }
    assert_int_equal(yaml_write(bytes, &out, &err), -1);
    assert_non_null(strstr(err.msg, "is not UTF-8"));
    assert_int_equal(yaml_write(deep, &out, &err), -1);
    assert_non_null(strstr(err.msg, "nested over"));
    assert_int_equal(yaml_write(text, &small, &err), -1);
}

/* ---- random trees */

static const char *const PIECES[] = {
    "a",    "B",    " ",  "  ",     "\n",       "\n\n",   "\t",   ":",    ": ",   " #",     "#",
    "-",    "- ",   "?",  "|",      ">",        "'",      "\"",   "\\",   "{",    "}",      "[",
    "]",    ",",    "&x", "*x",     "!t",       "%",      "@",    "`",    "1",    "0.5",    "e3",
    "null", "true", "~",  "---",    "...",      "\r",     "\x01", "\x7f", "é",    "\u00a0", "漢字",
    "😀",    "<<",   "=",  "\u2028", "\xc2\x85", "\ufeff", "yes",  "0x",   "\x1b", "on"};

static size_t below(uint64_t *r, size_t n)
{
    return (size_t)(random_next(r) % n);
}

static char *random_text(uint64_t *r)
{
    cleanup_buf struct buf text = BUF_INIT(1 << 12);
    struct err err;
    int n = (int)below(r, 6);

    for (int i = 0; i < n; i++)
        assert_int_equal(buf_puts(&text, PIECES[below(r, ARRAY_LEN(PIECES))], &err), 0);
    return memory_strdup(buf_str(&text));
}

static cJSON *random_tree(uint64_t *r, int depth)
{
    static const double NUMBERS[] = {0, 1, -7, 0.25, 1e15, 1e16, 1e300, 2.5e-9, 4294967296.0};
    int kind = (int)below(r, depth > 3 ? 6 : 10);

    if (kind < 4) {
        char *text = random_text(r);
        cJSON *s = cJSON_CreateString(text);
        free(text);
        return s;
    }
    if (kind == 4)
        return cJSON_CreateNumber(NUMBERS[below(r, ARRAY_LEN(NUMBERS))]);
    if (kind == 5)
        return below(r, 2) ? cJSON_CreateNull() : cJSON_CreateBool(below(r, 2) == 0);
    cJSON *parent = kind < 8 ? cJSON_CreateObject() : cJSON_CreateArray();
    for (int n = (int)below(r, 4); n > 0; n--) {
        cJSON *child = random_tree(r, depth + 1);
        char *key = random_text(r);
        if (kind >= 8)
            cJSON_AddItemToArray(parent, child);
        else if (cJSON_GetObjectItemCaseSensitive(parent, key))
            cJSON_Delete(child);
        else
            cJSON_AddItemToObject(parent, key, child);
        free(key);
    }
    return parent;
}

static void reads_back_what_it_wrote(void **state)
{
    (void)state;
    uint64_t r = seed_of_run();

    for (int i = 0; i < 4000; i++) {
        cleanup_json cJSON *tree = random_tree(&r, 0);
        cleanup_buf struct buf out = BUF_INIT(1 << 16);
        cleanup_arena struct arena a = {0};
        struct yaml_tree *parsed;
        struct err err = {0};
        assert_int_equal(yaml_write(tree, &out, &err), 0);
        if (yaml_tree_parse("f", buf_str(&out), out.len, &a, &parsed, &err) < 0)
            fail_msg("%s in:\n%s", err.msg, buf_str(&out));
        cleanup_json cJSON *again = yaml_json(parsed);
        if (json_hash(again) != json_hash(tree))
            fail_msg("read back as %s:\n%s", json_print(again, &a), buf_str(&out));
    }
}

static void put(const char *folder, int i, const char *ending, const struct buf *text)
{
    char path[512];
    struct err err;

    snprintf(path, sizeof(path), "%s/%d.%s", folder, i, ending);
    if (fs_write_atomic(path, buf_str(text), text->len, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        exit(1);
    }
}

static int write_files(const char *folder, int n)
{
    uint64_t r = seed_of_run();
    struct err err;

    for (int i = 0; i < n; i++) {
        cleanup_json cJSON *tree = cJSON_CreateArray();
        cleanup_buf struct buf json = BUF_INIT(1 << 20);
        cleanup_buf struct buf yaml = BUF_INIT(1 << 20);
        for (int k = 0; k < 100; k++)
            cJSON_AddItemToArray(tree, random_tree(&r, 0));
        if (json_write(tree, &json, &err) < 0 || yaml_write(tree, &yaml, &err) < 0)
            return 1;
        put(folder, i, "json", &json);
        put(folder, i, "yaml", &yaml);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_for_people),
        cmocka_unit_test(quotes_what_would_be_read_as_something_else),
        cmocka_unit_test(writes_numbers_that_every_reader_takes_for_numbers),
        cmocka_unit_test(refuses),
        cmocka_unit_test(reads_back_what_it_wrote),
    };

    if (argc == 3)
        return write_files(argv[1], atoi(argv[2]));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
