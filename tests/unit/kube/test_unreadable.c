/* test_unreadable.c - objects of every hostile shape, in a watch and in a list, cut at every place: the neighbours arrive, the
 * names are the object's own, and nothing is listed again because of it. A new shape is a line in SHAPES. */
#include "talk.h"

#include "common/cleanup.h"
#include "common/json.h"
#include "jsontext.h"
#include "kube/skim.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the text @M is the metadata of pod "x" and @I what is in it, @E someone else's metadata, and @N(t) the text t, N times. */
struct shape {
    const char *what, *text;
    char seen; /* '?': unreadable, '+': like any other */
};

static const struct shape SHAPES[] = {
    {"plain", "{@M,'spec':{'template':{@E}}}", '+'},
    {"metadata last", "{'spec':{'template':{@E}},@M}", '+'},
    {"64 levels", "{@M,'spec':@63([)@63(])}", '+'},
    {"65 levels", "{@M,'spec':@64([)@64(])}", '?'},
    {"70 levels", "{@M,'spec':@70([)@70(])}", '?'},
    {"70 levels before the names", "{'spec':@70({'metadata':)1@70(}),@M}", '?'},
    {"50,000 levels", "{'spec':@50000([)@50000(]),@M}", '?'},
    {"a NUL in a key", "{'spec':{'a\\u0000b':1,@E},@M}", '?'},
    {"a NUL in a string", "{@M,'spec':['\\u0000']}", '?'},
    {"a NUL beside the names", "{'metadata':{'annotations':{'name':'\\u0000'},@I}}", '?'},
    {"a backslash before u0000", "{@M,'spec':'\\\\u0000'}", '+'},
    {"4 MB of text", "{@M,'spec':'@400000(0123456789)'}", '?'},
    {"4 MB of text before the names", "{'a':'@400000(0123456789)','spec':{@E},@M}", '?'},
    {"600,000 escapes", "{'a':'@600000(\\u003c)',@M}", '?'},
    {"escaped quotes", "{'a':'@2000000(\\')',@M}", '?'},
    {"200,000 values", "{'a':[@200000(1,)1],@M}", '?'},
    {"100,000 values", "{'a':[@100000(1,)1],@M}", '+'},
    {"200,000 members", "{@M,'spec':{@200000('name':1,)'b':1}}", '?'},
    {"long managedFields",
     "{'metadata':{'managedFields':[{'name':'no','uid':'no','f':'@400000(0123456789)'}],@I}}", '?'},
    {"deep managedFields", "{'metadata':{'managedFields':@70({'metadata':){@E}@70(}),@I}}", '?'},
    {"a number of 80 digits", "{@M,'n':@80(7)}", '?'},
    {"numbers beyond a double",
     "{@M,'n':[9007199254740993,1e308,1e309,1e400,-1e400,0.1000000000000000000001]}", '+'},
    {"duplicate keys", "{@M,@E,'a':@70([)@70(])}", '?'},
    {"a list for metadata in between", "{@M,'spec':[{@E}],'a':@70([)@70(])}", '?'},
    {"labels with our keys",
     "{'metadata':{'labels':{'name':'no','uid':'no','namespace':'no'},@I},'a':@70([)@70(])}", '?'},
    {"a long owner", "{'metadata':{'ownerReferences':[{'uid':'@650000(o)','name':'no'}],@I},'a':'\\u0000'}",
     '?'},
    {"1,000 owners",
     "{'metadata':{'ownerReferences':[@1000({'uid':'no','name':'no'},){}],@I},'a':@70([)@70(])}", '?'},
    {"finalizers", "{'metadata':{'finalizers':[@300000('a.b/name',)''],@I}}", '?'},
    {"surrogate pairs", "{@M,'a':@70([)'\\ud83d\\ude00'@70(])}", '?'},
    {"brackets in strings", "{'a':'}]}]@600000({[\\'}),','b':@70([)@70(]),@M}", '?'},
    {"white space", "{@4000000( )@M}", '?'},
};

#define INNER "'namespace':'ns','name':'x','resourceVersion':'77','uid':'u-x'"
#define NAMELESS "a Pod without a readable metadata.name, uid or resourceVersion"
#define ELSE "'metadata':{'name':'no','uid':'no','resourceVersion':'1'}"

static void put(struct buf *out, const char *text, size_t len)
{
    struct err err;
    size_t from = out->len;

    assert_int_equal(buf_append(out, text, len, &err), 0);
    for (; from < out->len; from++)
        out->data[from] = out->data[from] == '\'' ? '"' : out->data[from];
}

static void puts_to(struct buf *out, const char *text)
{
    put(out, text, strlen(text));
}

static void expand(struct buf *out, const char *text)
{
    for (size_t n; *text; text += n) {
        n = strcspn(text, "@");
        put(out, text, n);
        if (!text[n])
            return;
        text += n + 1;
        if (*text == 'M' || *text == 'I' || *text == 'E') {
            puts_to(out, *text == 'M' ? "'metadata':{" INNER "}" : *text == 'I' ? INNER : ELSE);
            n = 1;
            continue;
        }
        char *body;
        long times = strtol(text, &body, 10);
        n = strcspn(body, ")");
        for (long i = 0; i < times; i++)
            put(out, body + 1, n - 1);
        n = (size_t)(body - text) + n + 1;
    }
}

static void feed(struct talk *t, const struct buf *text, size_t piece)
{
    for (size_t at = 0; at < text->len; at += piece) {
        size_t n = piece < text->len - at ? piece : text->len - at;
        if (watcher_feed(t->w, (struct sv){text->data + at, n}, t->now) < 0)
            fail_msg("refused at byte %zu", at + n);
    }
}

/* Every length of a piece for small texts, some for large ones. */
static size_t next_piece(size_t piece, size_t len)
{
    return len < 4096 && piece < 70 ? piece + 1 : piece < 100 ? 16384 : piece < len ? len : 0;
}

static size_t first_piece(size_t len)
{
    return len < 4096 ? 1 : 61;
}

/* `around`, with the shape's mark instead of its '%'. */
static const char *seen(const struct shape *s, const char *around, char *out, size_t size)
{
    snprintf(out, size, "%s", around);
    *strchr(out, '%') = s->seen;
    return out;
}

static void test_in_a_watch(void **ctx)
{
    struct talk *t = *ctx;
    char want[64];

    for (size_t i = 0; i < ARRAY_LEN(SHAPES); i++) {
        cleanup_buf struct buf text = BUF_INIT(16 << 20);
        puts_to(&text, EVENT("ADDED", "a", "75") "{'type':'MODIFIED','object':");
        expand(&text, SHAPES[i].text);
        puts_to(&text, "}\n");
        for (size_t n = first_piece(text.len); n; n = next_piece(n, text.len)) {
            talk_synced(t);
            talk_asks(t, "resourceVersion=10");
            feed(t, &text, n);
            talk_breaks(t, ERR_TRANSIENT);
            talk_saw(t, seen(&SHAPES[i], "+a %x ! ", want, sizeof(want)));
            talk_answers(t, "resourceVersion=77", EVENT("ADDED", "b", "78"));
            talk_saw(t, "+b ");
            talk_expires(t, "resourceVersion=78");
        }
    }
}

static void test_in_a_list(void **ctx)
{
    struct talk *t = *ctx;
    char want[64];

    for (size_t i = 0; i < ARRAY_LEN(SHAPES); i++) {
        cleanup_buf struct buf text = BUF_INIT(16 << 20);
        puts_to(&text, "{'kind':'PodList','items':[" ITEM("a", "75") ",");
        expand(&text, SHAPES[i].text);
        puts_to(&text, "," ITEM("b", "76") "],'metadata':{'resourceVersion':'80'}}\n");
        for (size_t n = first_piece(text.len); n; n = next_piece(n, text.len)) {
            talk_asks(t, "limit=500");
            feed(t, &text, n);
            assert_int_equal(talk_ends(t, 200), 0);
            talk_saw(t, seen(&SHAPES[i], "[ +a %x +b ] ", want, sizeof(want)));
            talk_expires(t, "resourceVersion=80");
        }
    }
}

/* The same objects, and their ends. */
static void test_deleted(void **ctx)
{
    struct talk *t = *ctx;
    char want[64];

    for (size_t i = 0; i < ARRAY_LEN(SHAPES); i++) {
        cleanup_buf struct buf text = BUF_INIT(32 << 20);
        puts_to(&text, EVENT("ADDED", "a", "75") "{'type':'ADDED','object':");
        expand(&text, SHAPES[i].text);
        puts_to(&text, "}\n{'object':");
        expand(&text, SHAPES[i].text);
        puts_to(&text, ",'type':'DELETED'}\n");
        talk_synced(t);
        talk_asks(t, "resourceVersion=10");
        feed(t, &text, 16384);
        talk_saw(t, seen(&SHAPES[i], "+a %x -x ", want, sizeof(want)));
        assert_int_equal(talk_ends(t, 200), 0);
        talk_expires(t, "resourceVersion=77");
    }
    assert_int_equal(watcher_stats(t->w).syncs, ARRAY_LEN(SHAPES));
}

/* What is no event, or is of an object that nobody can name, cannot be passed over: everything is listed again, and until then
 * no version is known. */
static void test_not_an_event(void **ctx)
{
    static const struct {
        const char *text, *problem;
    } rows[] = {
        {"{'type':'BOOKMARK','object':{@M,'a':@70([)@70(])}}\n", "of type \"BOOKMARK\" that cannot be read"},
        {"{'type':'ERROR','object':{'kind':'Status','a':@70([)@70(])}}\n",
         "of type \"ERROR\" that cannot be read"},
        {"{'type':'RENAMED','object':{@M,'a':@70([)@70(])}}\n", "unknown event type \"RENAMED\""},
        {"{'object':{@M,'a':@70([)@70(])}}\n", "expected \"type\" and \"object\""},
        {"{'type':'ADDED','object':{@M,'a':@70([)@69(])}}\n", "an incomplete event"},
        {"{'type':'ADDED','object':{@M,'a':@70([)@70(])}}}\n", "an incomplete event"},
        {"{'type':'ADDED','object':{@M,'a':@70([)@70(])}\n", "an incomplete event"},
        {"{'type':'MODIFIED','object':{'metadata':{'name':'x','uid':'u','resourceVersion':'9'},'a':@70([)@70("
         "])}}\n",
         "resourceVersion 9 after 10"},
        {"{'type':'ADDED','object':{@M,'a':nu}}\n", "not JSON"},
        {"{'type':'ADDED','object':{'metadata':{'name':'x','uid':'@100(u)','resourceVersion':'12'},'a':@70([)"
         "@70(])}}\n",
         NAMELESS},
        {"{'type':'DELETED','object':{'metadata':{'name':'\\u0078','uid':'u','resourceVersion':'12'},'a':@70("
         "[)@70(])}}\n",
         NAMELESS},
        {"{'type':'MODIFIED','object':{'metadata':{'name':'x','uid':'u'},'a':@70([)@70(])}}\n", NAMELESS},
    };
    struct talk *t = *ctx;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_buf struct buf text = BUF_INIT(1 << 20);
        expand(&text, rows[i].text);
        talk_synced(t);
        talk_asks(t, "watch=true");
        assert_int_equal(watcher_feed(t->w, (struct sv){text.data, text.len}, t->now), -1);
        assert_true(watcher_end(t->w, t->now, NULL, NULL) > 0);
        assert_string_equal(watcher_version(t->w), "");
        talk_saw(t, "! ");
        if (!strstr(t->problem, rows[i].problem))
            fail_msg("row %zu: %s", i, t->problem);
        t->now += WATCHER_QUIET_MS;
    }
}

/* No JSON: perhaps spoiled on the way, so everything is requested again; once, for the server may mean it. */
static void test_doubt(void **ctx)
{
    static const char spoiled[] = "{'type':'MODIFIED','object':{" META("a", "12") ",'spec':nu}}\n";
    struct talk *t = *ctx;

    for (int round = 0; round < 2; round++) {
        talk_synced(t);
        talk_asks(t, "watch=true");
        assert_int_equal(talk_feed(t, spoiled), -1);
        watcher_end(t->w, t->now, NULL, NULL);
        talk_saw(t, "! ");
        talk_asks(t, "limit=500");
        assert_int_equal(talk_feed(t, LIST("10", "", "{" META("a", "12") ",'spec':nu}," ITEM("b", "6"))), 0);
        assert_int_equal(talk_ends(t, 200), 0);
        talk_saw(t, "[ ?a +b ] ");
        assert_non_null(strstr(t->problem, "not JSON"));
        talk_asks(t, "watch=true");
        assert_int_equal(talk_feed(t, spoiled), 0);
        talk_saw(t, "?a ");
        t->now += WATCHER_QUIET_MS;
        talk_ends(t, 410);
        talk_saw(t, "! ");
    }
}

static void test_incomplete(void **ctx)
{
    static const char *const TEXTS[] = {"",     "{",   "{'a':1", "{]", "{'a':[}", "{}}",
                                        "{}{}", "{}x", "{}'x",   "[]", "1",       "'{}"};

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
        cleanup_skim struct skim s;
        skim_init(&s, false);
        cleanup_free char *text = jsontext(TEXTS[i]);
        skim_feed(&s, sv_from(text));
        if (skim_complete(&s))
            fail_msg("complete: %s", TEXTS[i]);
    }
}

/* Who controls an object, who manages a job, and whether it is being deleted. */
static void test_what_is_skimmed(void **ctx)
{
    static const struct {
        const char *text, *owner, *deletion, *manager;
    } ROWS[] = {
        {"{@M,'spec':{'runPolicy':{}}}", "", "", ""},
        {"{'metadata':{'ownerReferences':[{'uid':'p'},{'uid':'o','kind':'K','apiVersion':'g/"
         "v1','controller':true,'name':'j'},{'uid':'q','controller':true}],@I}}",
         "o", "", ""},
        {"{'metadata':{'ownerReferences':[{'uid':'o','controller':false}],@I}}", "", "", ""},
        {"{'metadata':{'ownerReferences':[{'uid':'@65(o)','controller':true}],@I}}", "", "", ""},
        {"{'metadata':{'ownerReferences':[{'x':{'controller':true},'uid':'o'}],@I}}", "", "", ""},
        {"{'metadata':{'deletionTimestamp':'2026-01-01T00:00:00Z',@I}}", "", "2026-01-01T00:00:00Z", ""},
        {"{'metadata':{'deletionTimestamp':null,@I}}", "", "", ""},
        {"{@M,'spec':{'a':@70([)@70(]),'runPolicy':{'a':[1],'managedBy':'k/multi'}}}", "", "", "k/multi"},
        {"{'spec':{'runPolicy':{'managedBy':'m','managedBy':'no'}},@M}", "", "", "m"},
        {"{@M,'spec':{'managedBy':'s','runPolicy':{'managedBy':'r'},'a':{'managedBy':'no'}}}", "", "", "s"},
        {"{@M,'spec':{'a':{'runPolicy':{'managedBy':'no'}}}}", "", "", ""},
        /* some other controller, whatever its name */
        {"{@M,'spec':{'runPolicy':{'managedBy':'a\\u003cb'}}}", "", "", "?"},
        {"{@M,'spec':{'runPolicy':{'managedBy':'@254(m)'}}}", "", "", "?"},
        {"{@M,'spec':{'managedBy':'@254(m)'}}", "", "", "?"},
    };

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        cleanup_buf struct buf text = BUF_INIT(4096);
        struct skim s;
        expand(&text, ROWS[i].text);
        skim_init(&s, false);
        skim_feed(&s, (struct sv){text.data, text.len});
        assert_true(skim_complete(&s));
        cleanup_json cJSON *o = skim_take(&s);
        const cJSON *meta = json_child(o, "metadata");
        const char *owner = json_str(cJSON_GetArrayItem(json_child(meta, "ownerReferences"), 0), "uid");
        const char *deletion = json_str(meta, "deletionTimestamp");
        const char *manager = json_str(json_child(o, "spec"), "managedBy");
        if (!manager)
            manager = json_str(json_find(o, (const char *[]){"spec", "runPolicy", NULL}), "managedBy");
        assert_string_equal(owner ? owner : "", ROWS[i].owner);
        assert_string_equal(deletion ? deletion : "", ROWS[i].deletion);
        assert_string_equal(manager ? manager : "", ROWS[i].manager);
        assert_string_equal(json_str(meta, "namespace"), "ns");
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, talk_setup, talk_teardown)
    const struct CMUnitTest tests[] = {
        T(test_in_a_watch),
        T(test_in_a_list),
        T(test_deleted),
        T(test_not_an_event),
        T(test_doubt),
        cmocka_unit_test(test_incomplete),
        cmocka_unit_test(test_what_is_skimmed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
