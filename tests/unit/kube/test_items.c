/* test_items.c - a list is cut into the same items, and a stream into the same lines, however their bytes are cut. */
#include "kube/items.h"

#include "common/json.h"
#include "jsontext.h"
#include "kube/gather.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

struct seen {
    char text[4096];
};

/* Of one that is too long: its name, or its type. */
static int on_item(void *ctx, struct sv item, struct skim *over, struct err *err)
{
    struct seen *s = ctx;
    const cJSON *tree = over ? over->tree : NULL;
    const char *name = json_meta(tree, "name");
    const char *type = json_str(tree, "type");

    (void)err;
    if (over)
        strcat(strcat(s->text, "over "), name ? name : type ? type : "");
    else
        strncat(s->text, item.p, item.len);
    strcat(s->text, "|");
    return 0;
}

/* Feed in pieces of random length 1..max; the rest printed into `rest`. -1: refused. */
static int run(const char *text, uint32_t seed, uint32_t max, struct seen *seen, char *rest, size_t rest_size,
               struct err *err)
{
    struct items s;
    cleanup_free char *json = jsontext(text);
    size_t len = strlen(json);
    int rc = 0;

    *seen = (struct seen){0};
    items_init(&s, 200);
    for (size_t at = 0; rc == 0 && at < len;) {
        seed = seed * 1664525U + 1013904223U;
        size_t n = 1 + (seed >> 8) % max;
        n = n < len - at ? n : len - at;
        rc = items_feed(&s, (struct sv){json + at, n}, on_item, seen, err);
        at += n;
    }
    cleanup_json cJSON *tree = rc == 0 ? items_finish(&s, err) : NULL;
    if (tree && rest)
        assert_true(cJSON_PrintPreallocated(tree, rest, (int)rest_size, false));
    items_release(&s);
    return tree ? 0 : -1;
}

static void check(const char *text, const char *items, const char *rest)
{
    cleanup_free char *want_items = jsontext(items);
    cleanup_free char *want_rest = jsontext(rest);
    struct seen seen;
    struct err err;
    char got[1000];

    for (uint32_t max = 1; max < 40; max += 3) {
        for (uint32_t seed = 0; seed < 50; seed++) {
            assert_int_equal(run(text, seed, max, &seen, got, sizeof(got), &err), 0);
            assert_string_equal(seen.text, want_items);
            assert_string_equal(got, want_rest);
        }
    }
}

static void test_lists(void **ctx)
{
    (void)ctx;
    check("{'kind':'PodList','metadata':{'resourceVersion':'7'},'items':[{'a':1},{'b':[{}]}]}\n",
          "{'a':1}|{'b':[{}]}|", "{'kind':'PodList','metadata':{'resourceVersion':'7'},'items':[]}");
    /* metadata after the items, white space, brackets and quotes inside strings */
    check(" { 'items' : [ {'s':'}],{\\'['} ,\n {} ] , 'metadata':{'continue':'a]b'}}", "{'s':'}],{\\'['}|{}|",
          "{'items':[],'metadata':{'continue':'a]b'}}");
    check("{'items':[]}", "", "{'items':[]}");
    check("{'items':null,'kind':'L'}", "", "{'items':null,'kind':'L'}");
    /* only the top level's key counts, and only the whole of it */
    check("{'metadata':{'items':[{'x':1}]},'items2':[{}],'aitems':[{}],'k':'items','items':[{'y':1}]}",
          "{'y':1}|", "{'metadata':{'items':[{'x':1}]},'items2':[{}],'aitems':[{}],'k':'items','items':[]}");
}

static void test_refused(void **ctx)
{
    static const char *const bad[] = {
        "[{}]",
        "{'items':[1,2]}",
        "{'items':[[{}]]}",
        "{'items':['a']}",
        "{'items':[{}]",
        "{'items':[{'a':'",
        "{'items':[{}]}}",
        "{'items':[{}]} x",
        "",
        "}",
        "not json at all",
        "{'items':[{}],}",
    };
    struct seen seen;
    struct err err;

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        for (uint32_t max = 1; max < 10; max += 2)
            if (run(bad[i], 1, max, &seen, NULL, 0, &err) == 0)
                fail_msg("accepted: %s", bad[i]);
}

static void test_limits(void **ctx)
{
    struct seen seen;
    struct err err;
    char text[400];
    struct items s;

    (void)ctx;
    snprintf(text, sizeof(text), "{'items':[{'a':'%0194d'}]}", 1); /* an item of exactly 200 bytes + 2 */
    assert_int_equal(run(text, 1, 7, &seen, NULL, 0, &err), 0);
    assert_string_equal(seen.text, "over |");
    assert_int_equal(run(text, 1, 1000, &seen, NULL, 0, &err), 0);
    assert_string_equal(seen.text, "over |");
    snprintf(text, sizeof(text), "{'items':[{'a':'%0200d','metadata':{'name':'n'}},{}]}", 1);
    assert_int_equal(run(text, 1, 7, &seen, NULL, 0, &err), 0);
    assert_string_equal(seen.text, "over n|{}|");
    snprintf(text, sizeof(text), "{'items':[{'a':'%0192d'}]}", 1);
    assert_int_equal(run(text, 1, 7, &seen, NULL, 0, &err), 0);
    assert_int_equal(run(text, 1, 1000, &seen, NULL, 0, &err), 0);

    items_init(&s, 100);
    static char around[70000];
    memset(around, 'x', sizeof(around));
    memcpy(around, "{'a':'", 6);
    assert_int_equal(items_feed(&s, (struct sv){around, sizeof(around)}, on_item, &seen, &err), -1);
    assert_non_null(strstr(err.msg, "around its items"));
    items_release(&s);
}

static const char stream[] = "{\"a\":1}\n\r\n\n{\"b\":\"z\\u00e4\xc3\xa4\"}\r\n{\"c\":3}\n";
static const char expected[] = "{\"a\":1}|{\"b\":\"z\\u00e4\xc3\xa4\"}|{\"c\":3}|";

/* 1 byte at a time, all at once, and random pieces of up to 15 bytes. */
static void test_pieces(void **ctx)
{
    (void)ctx;
    for (uint32_t round = 0; round < 500; round++) {
        struct gather l;
        struct seen seen = {0};
        struct err err;
        uint32_t state = round;
        size_t len = strlen(stream);
        gather_init(&l, 64, true);
        for (size_t at = 0, n; at < len; at += n) {
            state = state * 1664525U + 1013904223U;
            n = round == 0 ? 1 : round == 1 ? len : state >> 28;
            n = n < len - at ? n : len - at;
            assert_int_equal(gather_lines(&l, (struct sv){stream + at, n}, on_item, &seen, &err), 0);
        }
        assert_string_equal(seen.text, expected);
        gather_release(&l);
    }
}

static void test_too_long(void **ctx)
{
    struct gather l;
    struct seen seen = {0};
    struct err err;

    (void)ctx;
    gather_init(&l, 8, true);
    assert_int_equal(gather_lines(&l, sv_from("12345678\n"), on_item, &seen, &err), 0);
    assert_int_equal(gather_lines(&l, sv_from("123456789\n"), on_item, &seen, &err), 0);
    assert_int_equal(gather_lines(&l, sv_from("{\"type\""), on_item, &seen, &err), 0);
    assert_int_equal(gather_lines(&l, sv_from(":\"ADDE"), on_item, &seen, &err), 0);
    assert_int_equal(l.text.cap, 0);
    assert_int_equal(gather_lines(&l, sv_from("D\"}\nb\n"), on_item, &seen, &err), 0);
    assert_string_equal(seen.text, "12345678|over |over ADDED|b|");
    gather_release(&l);
}

/* Then it is no line any more. */
static void test_no_end(void **ctx)
{
    static char piece[1 << 20];
    struct gather l;
    struct seen seen = {0};
    struct err err;
    int n = 0;

    (void)ctx;
    gather_init(&l, 8, true);
    while (gather_lines(&l, (struct sv){piece, sizeof(piece)}, on_item, &seen, &err) == 0)
        n++;
    assert_int_equal(n, GATHER_MAX_BYTES / (1 << 20));
    assert_int_equal(err.kind, ERR_INVALID);
    gather_release(&l);
}

/* A line of megabytes in small pieces costs its own length, not its square; and the memory goes back. */
static void test_long_line_in_pieces(void **ctx)
{
    struct gather l;
    struct seen seen = {0};
    struct err err;
    static char piece[1000];
    size_t total = 0;

    (void)ctx;
    gather_init(&l, 3 << 20, true);
    memset(piece, 'x', sizeof(piece));
    for (int i = 0; i < 3000; i++, total += sizeof(piece))
        assert_int_equal(gather_lines(&l, (struct sv){piece, sizeof(piece)}, on_item, &seen, &err), 0);
    assert_int_equal(l.text.len, total);
    gather_reset(&l);
    assert_true(l.text.cap <= 16384);
    gather_release(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_no_end),
        cmocka_unit_test(test_long_line_in_pieces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
