/* test_yaml.c - documents give trees, or errors with line and column. */
#include "test.h"

#include "common/buf.h"
#include "common/json.h"
#include "common/yaml.h"

#include <string.h>

static int parse(const char *text, struct arena *a, struct yaml_tree **ret, struct err *err)
{
    return yaml_tree_parse("f.yaml", text, strlen(text), a, ret, err);
}

static void reads_values(void **state)
{
    (void)state;
    cleanup_arena struct arena a = {0};
    struct yaml_tree *tree;
    struct err err;
    int64_t i = 7;
    int64_t kept = 9;
    double d = 0;
    const char *s = NULL;
    int choice = -1;

    assert_int_equal(
        parse("n: 12\nlist: [a, {b: -1.5e3}]\ns: 'x y'\nnothing: null\ntilde: ~\nc: two\n", &a, &tree, &err),
        0);
    struct yaml_at root = yaml_root("f.yaml", tree);
    assert_int_equal(yaml_get_i64(&root, "n", 0, 12, &i, &err), 0);
    assert_int_equal(i, 12);
    struct yaml_at list = yaml_member(&root, "list");
    assert_int_equal(yaml_expect_sequence(&list, 2, 2, &err), 0);
    struct yaml_at item = yaml_item(&list, list.node->first->next, 1);
    assert_int_equal(yaml_get_f64(&item, "b", -2000, 0, &d, &err), 0);
    assert_true(d == -1500);
    assert_int_equal(yaml_get_str(&root, "s", 10, &s, &err), 0);
    assert_string_equal(s, "x y");
    assert_int_equal(yaml_get_choice(&root, "c", (const char *const[]){"one", "two", NULL}, &choice, &err),
                     0);
    assert_int_equal(choice, 1);
    for (int k = 0; k < 3; k++)
        assert_int_equal(
            yaml_get_i64(&root, (const char *const[]){"nothing", "tilde", "absent"}[k], 0, 1, &kept, &err),
            0);
    assert_int_equal(kept, 9);
}

static void refuses_documents(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "f.yaml:1: expected a YAML document, found none"},
        {"a: 1\nb: *x\n", "f.yaml:2: *x: no anchor &x is defined before it"},
        {"a: &x [1, *x]\n", "f.yaml:1: *x: no anchor &x is defined before it"},
        {"a: !!int 1\n", "f.yaml:1: tags (!name) are not accepted"},
        {"a: !t [1]\n", "f.yaml:1: tags (!name) are not accepted"},
        {"a: !!binary eA==\n", "f.yaml:1: tags (!name) are not accepted"},
        {"a: 1\n<<: 2\n", "f.yaml:2: <<: expected a mapping, or a list of mappings"},
        {"x: &x {k: 1}\ny:\n  <<: [*x, 1]\n", "f.yaml:3: <<: expected a mapping, or a list of mappings"},
        {"<<: {a: 1}\n<<: {b: 1}\n", "f.yaml:2: key \"<<\" is given here and in line 1"},
        {"x: &x {k: 1}\ny:\n  k: 2\n  <<: *x\n",
         "f.yaml:4: key \"k\" is given in line 3 and by <<: write << first"},
        {"a: 1\nb: 2\na: 3\n", "f.yaml:3: key \"a\" is given here and in line 1"},
        {"? [a]\n: 1\n", "f.yaml:1: a key must be a plain word"},
        {"a: 1\n---\nb: 2\n", "expected one YAML document, found another"},
        {"a: [1\n", "f.yaml:2: "},
        {"a: \"\\0\"\n", "f.yaml:1: a value holds a NUL character"},
        {"\xff\xfe", "f.yaml:1: "},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_arena struct arena a = {0};
        struct yaml_tree *tree = NULL;
        struct err err = {0};
        assert_int_equal(parse(cases[i].text, &a, &tree, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_null(tree);
        if (!strstr(err.msg, cases[i].says))
            fail_msg("case %zu: \"%s\" lacks \"%s\"", i, err.msg, cases[i].says);
    }
}

static void has_limits(void **state)
{
    (void)state;
    cleanup_arena struct arena a = {0};
    cleanup_buf struct buf text = BUF_INIT(1 << 20);
    struct yaml_tree *tree;
    struct err err;

    for (int depth = YAML_TREE_DEPTH_MAX; depth <= YAML_TREE_DEPTH_MAX + 1; depth++) {
        buf_clear(&text);
        for (int i = 0; i < depth; i++)
            assert_int_equal(buf_puts(&text, "[", &err), 0);
        for (int i = 0; i < depth; i++)
            assert_int_equal(buf_puts(&text, "]", &err), 0);
        assert_int_equal(parse(buf_str(&text), &a, &tree, &err), depth <= YAML_TREE_DEPTH_MAX ? 0 : -1);
    }
    assert_non_null(strstr(err.msg, "nested too deeply"));

    buf_clear(&text);
    for (int i = 0; i <= YAML_TREE_NODES_MAX; i++)
        assert_int_equal(buf_puts(&text, "- 1\n", &err), 0);
    assert_int_equal(parse(buf_str(&text), &a, &tree, &err), -1);
    assert_non_null(strstr(err.msg, "more than 16384 values"));

    assert_int_equal(yaml_tree_parse("f.yaml", buf_str(&text), YAML_TREE_BYTES_MAX + 1, &a, &tree, &err), -1);
    assert_non_null(strstr(err.msg, "expected at most 1048576"));
}

/* A document gives the same as one in which every alias and << is written out. */
static void reads_anchors_as_kubectl_does(void **state)
{
    (void)state;
    static const char MARK[] = "\xef\xbb\xbf";
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"a: &x yes\nb: *x\nc: &x 'yes'\nd: *x\n", "{'a':true,'b':true,'c':'yes','d':'yes'}"},
        {"a: &x [1, {b: 2}]\nc: [*x, *x]\n", "{'a':[1,{'b':2}],'c':[[1,{'b':2}],[1,{'b':2}]]}"},
        {"x: &x {k: 1, l: 2}\ny:\n  <<: *x\n  k: 3\n", "{'x':{'k':1,'l':2},'y':{'l':2,'k':3}}"},
        {"x: &x {k: 1}\ny: &y {k: 2, l: 3}\nz: {<<: [*x, *y], m: 4}\n",
         "{'x':{'k':1},'y':{'k':2,'l':3},'z':{'k':1,'l':3,'m':4}}"},
        {"x: &x {k: 1}\ny: &y {<<: *x, l: 2}\nz: {<<: *y}\n",
         "{'x':{'k':1},'y':{'k':1,'l':2},'z':{'k':1,'l':2}}"},
        {"&k a: 1\n'<<': 2\n*k : 3\n", NULL},
        {"&k a: 1\nb: {*k : 3}\n", "{'a':1,'b':{'a':3}}"},
        {"a: !!str 012\nb: ! 3\n'<<': 2\n", "{'a':'012','b':'3','<<':2}"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (int marked = 0; marked < 2; marked++) {
            cleanup_arena struct arena a = {0};
            cleanup_buf struct buf text = BUF_INIT(1 << 10), out = BUF_INIT(1 << 10);
            struct yaml_tree *tree;
            struct err err;
            assert_int_equal(buf_printf(&text, &err, "%s%s", marked ? MARK : "", cases[i].text), 0);
            if (parse(buf_str(&text), &a, &tree, &err)) {
                if (cases[i].json)
                    fail_msg("case %zu: %s", i, err.msg);
                continue;
            }
            assert_non_null(cases[i].json);
            cleanup_json cJSON *json = yaml_json(tree);
            assert_int_equal(json_write(json, &out, &err), 0);
            for (char *p = strchr(out.data, '"'); p; p = strchr(p, '"'))
                *p = '\'';
            assert_string_equal(buf_str(&out), cases[i].json);
        }
    }
}

/* An anchor reaches to the end of its document; each document may begin with a byte order mark, and UTF-16 has one. */
static void reads_marks_of_each_document(void **state)
{
    (void)state;
    static const char TWO[] = "\xef\xbb\xbf"
                              "a: &x 1\nb: 2\n---\n\xef\xbb\xbf"
                              "c: 3\nd: 4\n";
    static const char WIDE[] = "\xff\xfe"
                               "a\0:\0 \0"
                               "1\0\n\0"
                               "b\0:\0 \0"
                               "2\0\n\0";
    static const char OVER[] = "a: &x 1\n---\nb: *x\n";
    cleanup_arena struct arena a = {0};
    struct yaml_tree *tree;
    struct err err;

    if (yaml_documents("f.yaml", TWO, sizeof(TWO) - 1, &a, &tree, &err))
        fail_msg("%s", err.msg);
    assert_string_equal(tree->first->key, "a");
    assert_string_equal(tree->first->next->key, "b");
    assert_string_equal(tree->next->first->next->key, "d");
    assert_int_equal(tree->next->first->next->line, 5);
    if (yaml_tree_parse("f.yaml", WIDE, sizeof(WIDE) - 1, &a, &tree, &err))
        fail_msg("%s", err.msg);
    assert_string_equal(tree->first->next->key, "b");
    assert_int_equal(yaml_documents("f.yaml", OVER, sizeof(OVER) - 1, &a, &tree, &err), -1);
    assert_string_equal(err.msg, "f.yaml:3: *x: no anchor &x is defined before it");
}

/* Ten anchors of ten aliases each stand for 10^10 values, 30 aliases of a long text for 3 MB. Levels are counted, too. */
static void bounds_what_aliases_stand_for(void **state)
{
    (void)state;
    cleanup_arena struct arena a = {0};
    cleanup_buf struct buf text = BUF_INIT(1 << 20);
    struct yaml_tree *tree;
    struct err err;

    assert_int_equal(buf_puts(&text, "a0: &a0 x\n", &err), 0);
    for (int i = 1; i <= 10; i++) {
        assert_int_equal(buf_printf(&text, &err, "a%d: &a%d [", i, i), 0);
        for (int k = 0; k < 10; k++)
            assert_int_equal(buf_printf(&text, &err, "*a%d,", i - 1), 0);
        assert_int_equal(buf_puts(&text, "]\n", &err), 0);
    }
    assert_int_equal(parse(buf_str(&text), &a, &tree, &err), -1);
    assert_non_null(strstr(err.msg, "f.yaml:6: more than 16384 values"));

    buf_clear(&text);
    assert_int_equal(buf_puts(&text, "a: &a ", &err), 0);
    for (int i = 0; i < 100000; i++)
        assert_int_equal(buf_puts(&text, "x", &err), 0);
    for (int i = 0; i < 30; i++)
        assert_int_equal(buf_printf(&text, &err, "\nb%d: *a", i), 0);
    assert_int_equal(parse(buf_str(&text), &a, &tree, &err), -1);
    assert_non_null(strstr(err.msg, "aliases expand to more than 1048576 bytes"));

    buf_clear(&text);
    assert_int_equal(buf_puts(&text, "a0: &a0 [1]\n", &err), 0);
    for (int i = 1; i <= YAML_TREE_DEPTH_MAX; i++)
        assert_int_equal(buf_printf(&text, &err, "a%d: &a%d [*a%d]\n", i, i, i - 1), 0);
    assert_int_equal(parse(buf_str(&text), &a, &tree, &err), -1);
    assert_non_null(strstr(err.msg, "nested too deeply"));
}

/* Every cut of a good document is read or refused, never worse. */
static void survives_every_cut(void **state)
{
    (void)state;
    const char *text =
        "a: &a {b: [1, 'x', {c: \"y\"}], d: ~}\ne:\n  - <<: *a\n    f: *a\n    g: |\n      long\n";

    for (size_t len = 0; len <= strlen(text); len++) {
        cleanup_arena struct arena a = {0};
        struct yaml_tree *tree;
        struct err err = {0};
        if (yaml_tree_parse("f.yaml", text, len, &a, &tree, &err))
            assert_int_equal(err.kind, ERR_INVALID);
    }
}

static void errors_name_the_place(void **state)
{
    (void)state;
    cleanup_arena struct arena a = {0};
    struct yaml_tree *tree;
    struct err err;
    int64_t i = 0;
    double d = 0;
    int c = 0;
    const char *s = NULL;

    assert_int_equal(parse("a:\n  - {n: 65}\n  - {n: '7', f: nan, s: [], t: \"\"}\n", &a, &tree, &err), 0);
    struct yaml_at root = yaml_root("f.yaml", tree);
    struct yaml_at list = yaml_member(&root, "a");
    struct yaml_at first = yaml_item(&list, list.node->first, 0);
    struct yaml_at second = yaml_item(&list, list.node->first->next, 1);

    assert_int_equal(yaml_get_i64(&first, "n", 1, 64, &i, &err), -1);
    assert_string_equal(err.msg, "f.yaml:2: a[0].n: expected an integer 1..64, got \"65\"");
    assert_int_equal(yaml_get_i64(&second, "n", 1, 64, &i, &err), -1);
    assert_string_equal(err.msg, "f.yaml:3: a[1].n: expected an integer 1..64, got \"7\"");
    assert_int_equal(yaml_get_f64(&second, "f", 0, 1, &d, &err), -1);
    assert_string_equal(err.msg, "f.yaml:3: a[1].f: expected a number 0..1, got \"nan\"");
    assert_int_equal(yaml_get_str(&second, "s", 5, &s, &err), -1);
    assert_string_equal(err.msg, "f.yaml:3: a[1].s: expected a text, got a list");
    assert_int_equal(yaml_get_str(&second, "t", 5, &s, &err), -1);
    assert_int_equal(yaml_get_choice(&first, "n", (const char *const[]){"x", "y", NULL}, &c, &err), -1);
    assert_string_equal(err.msg, "f.yaml:2: a[0].n: expected one of: x, y; got \"65\"");
    assert_int_equal(yaml_require(&second, "q", &err), -1);
    assert_string_equal(err.msg, "f.yaml:3: a[1].q: is required");
    assert_int_equal(yaml_expect_mapping(&first, (const char *const[]){"m", "o", NULL}, &err), -1);
    assert_string_equal(err.msg, "f.yaml:2: a[0].n: unknown key, expected one of: m, o");
    assert_int_equal(yaml_expect_mapping(&list, (const char *const[]){"m", NULL}, &err), -1);
    assert_string_equal(err.msg, "f.yaml:2: a: expected a mapping, got a list");
    assert_int_equal(yaml_expect_sequence(&list, 3, 4, &err), -1);
    assert_int_equal(yaml_expect_sequence(&first, 0, 4, &err), -1);
    assert_int_equal(i, 0);
}

static void reads_several_documents(void **state)
{
    (void)state;
    cleanup_arena struct arena a = {0};
    struct yaml_tree *tree;
    struct err err;
    const char *text = "# first\na: 1\n---\n# nothing\n---\n\nb: 2\n...\n---\n- c\n";

    assert_int_equal(yaml_documents("f.yaml", text, strlen(text), &a, &tree, &err), 0);
    assert_string_equal(tree->first->key, "a");
    assert_int_equal(tree->next->first->line, 7);
    assert_string_equal(tree->next->first->key, "b");
    assert_int_equal(tree->next->next->line, 10);
    assert_null(tree->next->next->next);
    assert_int_equal(yaml_documents("f.yaml", "# none\n", 7, &a, &tree, &err), 0);
    assert_null(tree);
    text = "a: 1\n---\nb: [\n---\n";
    assert_int_equal(yaml_documents("f.yaml", text, strlen(text), &a, &tree, &err), -1);
    assert_memory_equal(err.msg, "f.yaml:4: ", 10);
}

static void types_scalars_as_kubectl_does(void **state)
{
    (void)state;
    cleanup_arena struct arena a = {0};
    struct yaml_tree *tree;
    struct err err;
    cleanup_buf struct buf out = BUF_INIT(1 << 10);

    assert_int_equal(parse("[0644, 0o17, 0, 08, 0x1f, 1e3, yes, Off, TRUE, tRUE, 'no', null, ~, Null, NULL, "
                           "nULL, y, 0.5, 1.2.3]",
                           &a, &tree, &err),
                     0);
    cleanup_json cJSON *json = yaml_json(tree);
    assert_int_equal(json_write(json, &out, &err), 0);
    assert_string_equal(
        buf_str(&out),
        "[420,15,0,8,\"0x1f\",1000,true,false,true,\"tRUE\",\"no\",null,null,null,null,\"nULL\","
        "\"y\",0.5,\"1.2.3\"]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_values),
        cmocka_unit_test(refuses_documents),
        cmocka_unit_test(has_limits),
        cmocka_unit_test(reads_anchors_as_kubectl_does),
        cmocka_unit_test(reads_marks_of_each_document),
        cmocka_unit_test(bounds_what_aliases_stand_for),
        cmocka_unit_test(survives_every_cut),
        cmocka_unit_test(errors_name_the_place),
        cmocka_unit_test(reads_several_documents),
        cmocka_unit_test(types_scalars_as_kubectl_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
