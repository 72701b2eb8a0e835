/* test_screen.c - `kubectl ptj why` on staged failures: every file of tests/golden/why is a case (whycase.h). GOLDEN_UPDATE=1
 * writes the wants again. WHY_GOLDEN names another folder of cases.
 */
#include "test.h"
#include "whycase.h"
#include "yamldoc.h"

#include "cli/shown.h"
#include "cli/why/cause.h"
#include "cli/why/screen.h"
#include "cli/why/whyjson.h"
#include "common/clock.h"
#include "common/fsutil.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN TK_SOURCE_DIR "/tests/golden/"

enum { CASES_MAX = 200, CASES_MIN = 40, TEXT_MAX = 1 << 20, ROWS = 24, COLUMNS = 80, CAUSE_ROWS = 3 };

static struct whycase_folder folder;

/* Wants that GOLDEN_UPDATE=1 is to write, once the table of sentences is known to be what the program says. */
static struct {
    struct arena arena;
    int n;
    struct {
        const char *name, *want;
    } items[CASES_MAX];
} changed;

static void set_facts(const cJSON *doc, struct why_facts *f)
{
    const cJSON *gap;
    struct err err;

    *f = (struct why_facts){.options = "",
                            .pods = cJSON_GetObjectItem(doc, "pods"),
                            .events = cJSON_GetObjectItem(doc, "events"),
                            .claims = cJSON_GetObjectItem(doc, "claims"),
                            .nodes = cJSON_GetObjectItem(doc, "nodes"),
                            .budgets = cJSON_GetObjectItem(doc, "budgets"),
                            .pending = cJSON_GetObjectItem(doc, "pending"),
                            .log = json_str(doc, "log")};
    assert_true(clock_parse_rfc3339(json_str(doc, "now"), &f->now_ms));
    cJSON_ArrayForEach(gap, cJSON_GetObjectItem(doc, "gaps"))
        snprintf(f->gaps[f->n_gaps++], sizeof(f->gaps[0]), "%s", gap->valuestring);
    f->job = trainjob_decode(cJSON_Duplicate(cJSON_GetObjectItem(doc, "job"), true), &err);
    if (!f->job)
        fail_msg("%s", err.msg);
    assert_null(f->job->spec_error);
}

/* No more than a screen, and the cause in its first lines; what is wrapped there counts as one text. */
static void check_screen(const char *name, const char *screen, const char *cause)
{
    struct sv rest = sv_from(screen), line;
    char first[CAUSE_ROWS * (COLUMNS * 4 + 1) + 1] = "";
    int rows = 0;

    while (rest.len && sv_next(&rest, '\n', &line)) {
        if (shown_columns(line) > COLUMNS)
            fail_msg("%s: more than %d columns: %.*s", name, COLUMNS, (int)line.len, line.p);
        line = sv_trim(line);
        if (rows++ < CAUSE_ROWS)
            snprintf(first + strlen(first), sizeof(first) - strlen(first), "%s%.*s", rows > 1 ? " " : "",
                     (int)line.len, line.p);
    }
    if (rows >= ROWS)
        fail_msg("%s: %d rows:\n%s", name, rows, screen);
    if (!strstr(first, cause))
        fail_msg("%s: expected \"%s\" in the first lines:\n%s", name, cause, screen);
}

/* What the operator and the user do next is indented below its title, line by line. */
static void check_tail(const char *name, const char *screen)
{
    const char *next = strstr(screen, "\nOperator: "), *what = strstr(screen, "\nDo:       ");
    struct sv rest, line;

    if (!what)
        fail_msg("%s: it does not say what to do:\n%s", name, screen);
    for (rest = sv_from((next ? next : what) + 1); rest.len && sv_next(&rest, '\n', &line);)
        if (!sv_starts(line, "Operator: ") && !sv_starts(line, "Do:       ") &&
            !sv_starts(line, "          "))
            fail_msg("%s: not indented: \"%.*s\"", name, (int)line.len, line.p);
}

/* Uncut, what the cause says is within one of the first three lines; the launcher's failure block is nowhere. */
static void check_piped(const char *name, const char *all, const char *cause)
{
    const char *at = strstr(all, cause);
    int lines = 0;

    for (const char *p = all; p < at; p++)
        lines += *p == '\n';
    if (!at || lines >= CAUSE_ROWS || strstr(all, "Root Cause (first observed failure)"))
        fail_msg("%s: expected \"%s\" in the first lines, and no failure block:\n%s", name, cause, all);
}

static void check_safe(const char *name, const char *screen)
{
    for (const char *p = screen; *p; p++)
        if ((unsigned char)*p < 0x20 && *p != '\n')
            fail_msg("%s: a control character in:\n%s", name, screen);
}

/* Each command reaches the same server as the same user: these options stand before the next one. */
static void check_commands(const char *name, const char *text, const char *options)
{
    for (const char *at = text, *next; (at = strstr(at, "kubectl ")); at = next) {
        next = strstr(at + 1, "kubectl ");
        next = next ? next : at + strlen(at);
        if (!memmem(at, (size_t)(next - at), options, strlen(options)))
            fail_msg("%s: without %s: %.*s", name, options, (int)(next - at), at);
    }
}

static void check_options(const char *name, struct why_facts facts)
{
    cleanup_buf struct buf all = BUF_INIT(TEXT_MAX);

    facts.options = " --as=me";
    facts.n_gaps = 0;
    screen_print(&facts, (struct screen_size){0}, &all);
    assert_false(all.full);
    check_commands(name, buf_str(&all), facts.options);
}

/* The same answer as an object: the cause and its sentences where the screen has them, and nothing that is not known. */
static void check_json(const char *name, const struct why_facts *facts, const char *all)
{
    cleanup_json cJSON *o = whyjson_of(facts);
    const cJSON *cause = cJSON_GetObjectItem(o, "cause"), *pod, *item;
    const char *next = json_str(cJSON_GetObjectItem(o, "next"), "operator");
    int pods = 0;

    if (!cause != !strstr(all, "\nOperator: ") || !cause != !next || (cause && !json_str(cause, "kind")))
        fail_msg("%s: cause and next.operator of %s", name, cJSON_PrintUnformatted(o));
    assert_string_equal(json_str(o, "name"), facts->job->name);
    assert_non_null(json_str(o, "summary"));
    assert_non_null(json_str(cJSON_GetObjectItem(o, "next"), "user"));
    cJSON_ArrayForEach(item, cause) assert_true(!cJSON_IsNumber(item) || item->valuedouble >= 0);
    cJSON_ArrayForEach(pod, cJSON_GetObjectItem(o, "pods"))
    {
        pods += same_text(json_str(pod, "name"), json_str(cause, "pod"));
        assert_null(cJSON_GetObjectItem(cJSON_GetObjectItem(pod, "cause"), "log"));
    }
    assert_true(pods <= 1);
}

static void run_case(void **state)
{
    const char *name = *state;
    cleanup_arena struct arena a = {0};
    cleanup_buf struct buf screen = BUF_INIT(TEXT_MAX), all = BUF_INIT(TEXT_MAX);
    struct why_facts facts;
    struct err err;

    cleanup_json cJSON *doc = whycase_read(&folder, name, &err);
    if (!doc)
        fail_msg("%s: %s", name, err.msg);
    set_facts(doc, &facts);
    screen_print(&facts, (struct screen_size){COLUMNS, ROWS, false}, &screen);
    screen_print(&facts, (struct screen_size){.events = true}, &all);
    assert_false(screen.full || all.full);
    check_options(name, facts);
    check_json(name, &facts, buf_str(&all));
    trainjob_free((struct trainjob *)(uintptr_t)facts.job);
    check_screen(name, buf_str(&screen), json_str(doc, "cause"));
    check_piped(name, buf_str(&all), json_str(doc, "cause"));
    check_safe(name, buf_str(&screen));
    check_safe(name, buf_str(&all));
    check_tail(name, buf_str(&screen));
    const char *got = whycase_fold(&folder, buf_str(&screen), &a),
               *want = whycase_want(&folder, name, &a, &err);
    if (!want)
        fail_msg("%s: %s", name, err.msg);
    if (strcmp(want, got) == 0)
        return;
    if (!getenv("GOLDEN_UPDATE"))
        fail_msg("%s: want\n%s\ngot\n%s", name, want, got);
    changed.items[changed.n].name = name;
    changed.items[changed.n++].want = arena_strdup(&changed.arena, got);
}

/* What no screen says is no sentence of this program any more: nothing is written before the table is right. */
static void test_sentences(void **state)
{
    struct err err;

    (void)state;
    for (int i = 0; i < folder.said.n && !getenv("WHY_GOLDEN"); i++)
        if (!folder.said.items[i].produced)
            fail_msg("_sentences.yaml: no case says %s: \"%s\"; nothing is written", folder.said.items[i].key,
                     folder.said.items[i].text);
    for (int i = 0; i < changed.n; i++)
        assert_int_equal(whycase_write_want(&folder, changed.items[i].name, changed.items[i].want, &err), 0);
    if (changed.n)
        print_message("%d wants are written\n", changed.n);
}

/* Those of the table of causes that no case shows, too. */
static void test_commands(void **state)
{
    cleanup_buf struct buf table = BUF_INIT(TEXT_MAX);
    struct err err;

    (void)state;
    assert_int_equal(fs_read(TK_SOURCE_DIR "/cli/why/causes.yaml", &table, &err), 0);
    assert_non_null(strstr(buf_str(&table), "kubectl describe pvc -n {ns}{with}"));
    check_commands("causes.yaml", buf_str(&table), "{with}");
}

static void set_message(cJSON *doc, const char *text)
{
    cJSON *conditions = cJSON_GetObjectItem(cJSON_GetObjectItem(cJSON_GetObjectItem(doc, "job"), "status"),
                                            "conditions"),
          *c;

    cJSON_ArrayForEach(c, conditions) if (same_text(json_str(c, "type"), "Running"))
        cJSON_ReplaceItemInObject(c, "message", cJSON_CreateString(text));
}

/* Of a message of random words that is too long for its rows the end is there, whatever the width. */
static void test_ends(void **state)
{
    unsigned seed = 1;
    struct err err;

    (void)state;
    for (int columns = SCREEN_COLUMNS_MIN; columns < 120; columns++)
        for (int i = 0; i < 20; i++) {
            cleanup_buf struct buf text = BUF_INIT(TEXT_MAX), screen = BUF_INIT(TEXT_MAX);
            struct why_facts facts;
            cleanup_json cJSON *doc = whycase_read(&folder, "queued", &err);
            assert_non_null(doc);
            while (text.len < 600) {
                seed = seed * 1103515245 + 12345;
                assert_int_equal(buf_printf(&text, &err, "%.*s ", (int)(seed >> 16) % 24 + 1,
                                            "abcdefghijklmnopqrstuvwxyz"),
                                 0);
            }
            assert_int_equal(buf_puts(&text, "END", &err), 0);
            set_message(doc, buf_str(&text));
            set_facts(doc, &facts);
            screen_print(&facts, (struct screen_size){columns, ROWS, false}, &screen);
            trainjob_free((struct trainjob *)(uintptr_t)facts.job);
            if (!strstr(buf_str(&screen), "END\n"))
                fail_msg("%d columns, %s:\n%s", columns, buf_str(&text), buf_str(&screen));
        }
}

/* A finding that no row names passes all of its kind, and has the last one. */
static void test_rows(void **state)
{
    cleanup_arena struct arena a = {0};
    const struct yaml_tree *causes = causes_read(&a);
    struct finding unknown = FINDING_NONE;

    (void)state;
    unknown.reason = "Unknown";
    unknown.exit_code = 99;
    for (unknown.kind = WHY_JOB; unknown.kind <= WHY_FAILURE; unknown.kind++) {
        const struct cause *c = cause_of(causes, &unknown, &a);
        assert_true(!c->reasons && !c->code && !c->texts);
    }
}

static enum why_kind kind_of(const char *name)
{
    int i = WHY_JOB;

    while (CAUSE_KINDS[i] && strcmp(CAUSE_KINDS[i], name) != 0)
        i++;
    assert_non_null(CAUSE_KINDS[i]);
    return (enum why_kind)i;
}

/* The words alone decide: the rows of _causes.yaml. */
static void test_causes(void **state)
{
    cleanup_arena struct arena a = {0};
    const struct yaml_tree *causes = causes_read(&a);
    struct err err;
    const cJSON *row;

    (void)state;
    cleanup_json cJSON *rows = yamldoc_read(GOLDEN "why/_causes.yaml", &err);
    assert_true(cJSON_GetArraySize(rows) > 0);
    cJSON_ArrayForEach(row, rows)
    {
        struct finding g = FINDING_NONE;
        g.kind = kind_of(json_str(row, "kind"));
        g.reason = json_str(row, "reason");
        g.exit_code = (int32_t)json_i64(row, "code", -1);
        g.message = g.text = json_str(row, "says");
        g.line = g.kind == WHY_FAILURE ? g.message : NULL;
        const struct cause *c = cause_of(causes, &g, &a);
        if (!strstr(c->headline, json_str(row, "cause")))
            fail_msg("%s\nexpected \"%s\", got \"%s\"", g.message, json_str(row, "cause"), c->headline);
    }
}

static int is_case(const struct dirent *d)
{
    const char *dot = strstr(d->d_name, ".yaml");

    return d->d_name[0] != '_' && dot && !dot[5];
}

int main(void)
{
    static struct CMUnitTest tests[CASES_MAX + 5];
    struct dirent **cases;
    struct err err;
    const char *path = getenv("WHY_GOLDEN") ? getenv("WHY_GOLDEN") : GOLDEN "why";
    const int n = scandir(path, &cases, is_case, alphasort);

    if (n < CASES_MIN || n > CASES_MAX) {
        fprintf(stderr, "%s: %d cases\n", path, n);
        return 1;
    }
    if (whycase_open(path, GOLDEN "plan/_sentences.yaml", &folder, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    for (int i = 0; i < n; i++) {
        *strrchr(cases[i]->d_name, '.') = '\0';
        tests[i] = (struct CMUnitTest){
            .name = cases[i]->d_name, .test_func = run_case, .initial_state = cases[i]->d_name};
    }
    tests[n] = (struct CMUnitTest)cmocka_unit_test(test_sentences);
    tests[n + 1] = (struct CMUnitTest)cmocka_unit_test(test_commands);
    tests[n + 2] = (struct CMUnitTest)cmocka_unit_test(test_rows);
    tests[n + 3] = (struct CMUnitTest)cmocka_unit_test(test_ends);
    tests[n + 4] = (struct CMUnitTest)cmocka_unit_test(test_causes);
    const int failed = _cmocka_run_group_tests(path, tests, (size_t)n + 5, NULL, NULL);
    for (int i = 0; i < n; i++)
        free(cases[i]);
    free(cases);
    whycase_close(&folder);
    arena_release(&changed.arena);
    return failed != 0;
}
