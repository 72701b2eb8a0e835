/* test_golden.c - every file of tests/golden/plan is a case; README.md there describes their form and how to update them. */
#include "common/fsutil.h"
#include "plancase.h"
#include "statusbrief.h"
#include "test.h"
#include "wantbrief.h"
#include "yamldoc.h"

#include <stdio.h>
#include <string.h>

enum { CASES_MAX = 512, CASES_MIN = 200, WANT_MAX = 1 << 20, BASES_MAX = 32, BASES_MIN = 4, TOLD_MAX = 20 };

struct one {
    const char *file;
    char trouble[512]; /* what is wrong with the file, or with what plan writes; "": nothing */
    struct plancase c;
    cJSON *got;   /* the plan in short form */
    bool differs; /* from the want */
};

static struct {
    struct plancases shared;
    struct one cases[CASES_MAX];
    int n;
    struct one bases[BASES_MAX];
    int n_bases;
    struct arena arena;
} all;

/* ---- messages */

struct look {
    struct one *of;
    bool status; /* whether the words of the input's status are known */
};

/* The first text in the message that no entry of the table and no word of the case's input explains; NULL: there is none. */
static const char *unknown_text(const struct look *look, const cJSON *message)
{
    if (!sentences_unknown(message, ""))
        return NULL;
    cleanup_arena struct arena a = {0};
    cleanup_json cJSON *input = cJSON_Duplicate(look->of->c.doc, true);
    cJSON_DeleteItemFromObjectCaseSensitive(input, "want");
    if (!look->status)
        cJSON_DeleteItemFromObjectCaseSensitive(input, "status");
    return sentences_unknown(message, json_print(input, &a));
}

static void look_at_plan(void *ctx, const cJSON *message)
{
    const struct look *look = ctx;
    const char *text = unknown_text(look, message);

    sentences_note(&all.shared.sentences, message);
    if (text)
        snprintf(look->of->trouble, sizeof(look->of->trouble), "\"%.200s\" is not in _sentences.yaml", text);
}

/* A sentence of plan in an input would stay behind when plan's words change. */
static void look_at_input(void *ctx, const cJSON *message)
{
    const struct look *look = ctx;

    if (!cJSON_IsString(message))
        return;
    cleanup_json cJSON *node = sentences_node(&all.shared.sentences, message->valuestring);
    if (cJSON_IsArray(node))
        snprintf(look->of->trouble, sizeof(look->of->trouble),
                 "status: \"%.200s\" is a sentence of plan: write [%s, ...]", message->valuestring,
                 node->child->valuestring);
    else if (unknown_text(look, node))
        snprintf(look->of->trouble, sizeof(look->of->trouble),
                 "status: \"%.200s\": plan writes no such sentence", message->valuestring);
}

/* ---- run them all */

static void run_one(struct one *o)
{
    static const char *const VERSION[] = {"metadata", "resourceVersion", NULL};
    struct err err = {0};

    if (plancase_read(&all.shared, o->file, &o->c, &err) < 0) {
        snprintf(o->trouble, sizeof(o->trouble), "%.500s", err.msg);
        return;
    }
    const char *version = json_find(o->c.job, VERSION)->valuestring;
    const cJSON *want = json_child(o->c.doc, "want");
    o->got = want_shorten(&all.shared.sentences, o->c.plan, version);
    o->differs = !cJSON_Compare(want, o->got, true);
    struct look look = {.of = o, .status = true};
    want_messages(o->got, look_at_plan, &look);
    look.status = false;
    status_messages(json_child(o->c.doc, "status"), look_at_input, &look);
}

/* Where the base says with which pods nothing changes, plan writes no status: it contains what plan would write. */
static void check_base(const cJSON *base)
{
    struct one *o = &all.bases[all.n_bases];
    struct err err = {0};

    if (!json_child(base, "steady"))
        return;
    all.n_bases++;
    o->file = base->string;
    cJSON *doc = cJSON_Duplicate(json_child(base, "steady"), true);
    cJSON_AddItemToArray(cJSON_GetObjectItemCaseSensitive(doc, "base"), cJSON_CreateString(base->string));
    if (plancase_run(&all.shared, doc, &o->c, &err) < 0)
        snprintf(o->trouble, sizeof(o->trouble), "%.500s", err.msg);
    else if (cJSON_GetArraySize(json_child(o->c.plan, "actions")) > 0)
        snprintf(o->trouble, sizeof(o->trouble), "the status is no longer what plan writes: %.400s",
                 json_print(json_child(o->c.plan, "actions"), &all.arena));
}

static void run_all(void)
{
    const cJSON *base;

    for (int i = 0; i < all.n; i++)
        run_one(&all.cases[i]);
    cJSON_ArrayForEach(base, all.shared.bases) if (all.n_bases < BASES_MAX) check_base(base);
}

/* Where plan's words changed, the entry that had them is here, and what plan writes now in the cases. Returns how many there are. */
static int tell_sentences(void)
{
    int n = 0;

    for (int i = 0; i < all.shared.sentences.n; i++) {
        const struct sentence *s = &all.shared.sentences.items[i];
        if (s->produced)
            continue;
        print_error("_sentences.yaml: no case produces %s: \"%s\"\n", s->key, s->text);
        n++;
    }
    return n;
}

/* ---- check */

static void show(const char *title, const cJSON *list)
{
    cleanup_buf struct buf text = BUF_INIT(WANT_MAX);
    struct err err;

    if (yamldoc_write_list(title, list, &text, &err) == 0)
        print_error("%s", buf_str(&text));
}

static void test_case(void **state)
{
    const struct one *o = *state;

    if (o->trouble[0])
        fail_msg("%s: %s", o->file, o->trouble);
    if (o->differs) {
        show("want", json_child(o->c.doc, "want"));
        show("got", o->got);
        fail_msg("%s: plan says something else; GOLDEN_UPDATE=1 makes the wants anew", o->file);
    }
}

static void test_sentences(void **state)
{
    (void)state;
    assert_int_equal(tell_sentences(), 0);
}

static void test_bases(void **state)
{
    (void)state;
    for (int i = 0; i < all.n_bases; i++)
        if (all.bases[i].trouble[0])
            fail_msg("_base/%s.yaml: %s", all.bases[i].file, all.bases[i].trouble);
    assert_true(all.n_bases >= BASES_MIN);
}

static int check(void)
{
    static struct CMUnitTest tests[CASES_MAX + 2];

    for (int i = 0; i < all.n; i++)
        tests[i] = (struct CMUnitTest){all.cases[i].file, test_case, NULL, NULL, &all.cases[i]};
    tests[all.n] = (struct CMUnitTest)cmocka_unit_test(test_sentences);
    tests[all.n + 1] = (struct CMUnitTest)cmocka_unit_test(test_bases);
    return _cmocka_run_group_tests("golden plans", tests, (size_t)all.n + 2, NULL, NULL);
}

/* ---- update the files */

/* All of the file but its want, which stands last, is kept. 1: it was written; 0: it is as it was. */
static int write_one(const struct one *o, struct err *err)
{
    static const char MARK[] = "\nwant:";
    cleanup_buf struct buf old = BUF_INIT(WANT_MAX);
    cleanup_buf struct buf text = BUF_INIT(WANT_MAX);
    char path[512];

    snprintf(path, sizeof(path), PLANCASES_FOLDER "/%s", o->file);
    if (fs_read(path, &old, err) < 0)
        return -1;
    const char *want = strstr(buf_str(&old), MARK);
    size_t head = want ? (size_t)(want + 1 - buf_str(&old)) : old.len;
    if (buf_append(&text, buf_str(&old), head, err) < 0 || yamldoc_write_list("want", o->got, &text, err) < 0)
        return -1;
    if (text.len == old.len && memcmp(buf_str(&text), buf_str(&old), old.len) == 0)
        return 0;
    return fs_write_atomic(path, buf_str(&text), text.len, err) < 0 ? -1 : 1;
}

static int write_all(void)
{
    struct err err = {0};
    int written = 0;

    for (int i = 0; i < all.n; i++) {
        const int rc = write_one(&all.cases[i], &err);
        if (rc < 0) {
            print_error("%s: %s\n", all.cases[i].file, err.msg);
            return 1;
        }
        written += rc;
    }
    printf("%d of %d cases written\n", written, all.n);
    return 0;
}

/* Nothing is written where an input or the table no longer says what plan writes: the wants would be made from that. */
static int update(void)
{
    int troubles = tell_sentences();

    for (int i = 0; i < all.n_bases; i++)
        if (all.bases[i].trouble[0] && troubles++ < TOLD_MAX)
            print_error("_base/%s.yaml: %s\n", all.bases[i].file, all.bases[i].trouble);
    for (int i = 0; i < all.n; i++)
        if (all.cases[i].trouble[0] && troubles++ < TOLD_MAX)
            print_error("%s: %s\n", all.cases[i].file, all.cases[i].trouble);
    if (troubles)
        print_error("nothing is written: mend the inputs and _sentences.yaml first\n");
    return troubles ? 1 : write_all();
}

int main(void)
{
    struct dirent **names = NULL;
    struct err err = {0};
    const bool anew = getenv("GOLDEN_UPDATE") != NULL;

    all.n = plancases_list(&names);
    if (all.n < CASES_MIN || all.n > CASES_MAX) {
        fprintf(stderr, PLANCASES_FOLDER ": expected %d..%d cases, found %d\n", CASES_MIN, CASES_MAX, all.n);
        return 1;
    }
    if (plancases_open(&all.shared, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    for (int i = 0; i < all.n; i++)
        all.cases[i].file = names[i]->d_name;
    run_all();
    int rc = anew ? update() : check();
    for (int i = 0; i < all.n; i++) {
        plancase_free(&all.cases[i].c);
        cJSON_Delete(all.cases[i].got);
        free(names[i]);
    }
    free(names);
    for (int i = 0; i < all.n_bases; i++)
        plancase_free(&all.bases[i].c);
    arena_release(&all.arena);
    plancases_close(&all.shared);
    return rc != 0; /* of 256 failed cases the exit status would be 0 */
}
