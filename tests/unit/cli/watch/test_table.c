/* test_table.c - the table of jobs at several sizes, against tests/golden/watch. GOLDEN_UPDATE=1 writes them again. */
#include "test.h"

#include "cli/shown.h"
#include "cli/watch/table.h"
#include "common/clock.h"
#include "common/fsutil.h"
#include "common/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN TK_SOURCE_DIR "/tests/golden/watch/"

static int64_t fill(struct board *b)
{
    cleanup_buf struct buf text = BUF_INIT(1 << 20);
    struct err err;
    const cJSON *item;
    int64_t now = 0;

    assert_int_equal(fs_read(GOLDEN "jobs.json", &text, &err), 0);
    cleanup_json cJSON *all = json_parse(text.data, text.len, &err);
    assert_non_null(all);
    board_init(b);
    board_list_begin(b);
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(all, "jobs")) assert_non_null(board_put(b, item));
    board_list_end(b, NULL, NULL);
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(all, "events")) board_event(b, item);
    assert_true(clock_parse_rfc3339(json_str(all, "now"), &now));
    /* What a watch has seen of one job since it began. */
    struct board_job *j = board_find(b, "team", "bert");
    static const double LOSSES[] = {2.3, 1.9, 1.7, 1.8, 1.2, 1.0, 0.9, 0.7, 0.6, 0.58, 0.55};
    memmove(j->losses + ARRAY_LEN(LOSSES), j->losses, sizeof(double));
    memcpy(j->losses, LOSSES, sizeof(LOSSES));
    j->n_losses += (int)ARRAY_LEN(LOSSES);
    return now;
}

static void expect_golden(const char *name, const struct buf *got)
{
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    char path[512];
    struct err err;

    snprintf(path, sizeof(path), GOLDEN "%s.txt", name);
    if (getenv("GOLDEN_UPDATE"))
        assert_int_equal(fs_write_atomic(path, got->data, got->len, &err), 0);
    assert_int_equal(fs_read(path, &want, &err), 0);
    assert_string_equal(buf_str(got), buf_str(&want));
}

static void draw(const struct table *s, const struct board *b, struct buf *out)
{
    size_t n;
    struct board_job **jobs = board_sorted(b, &n);

    table_draw(s, jobs, n, out);
    free(jobs);
}

static void draw_golden(const char *name, struct table s)
{
    struct board b;
    cleanup_buf struct buf out = BUF_INIT(TABLE_BYTES_MAX);

    s.what = s.what ? s.what : "namespace team";
    s.now_ms = fill(&b);
    s.selected = TABLE_NONE;
    draw(&s, &b, &out);
    expect_golden(name, &out);
    board_release(&b);
}

static void test_sizes(void **state)
{
    (void)state;
    draw_golden("80x24", (struct table){.columns = 80, .rows = 24, .unicode = true, .note = "q quits"});
    draw_golden("100x12", (struct table){.columns = 100, .rows = 12, .unicode = true, .note = "q quits"});
    draw_golden("160x24", (struct table){.columns = 160, .rows = 24, .unicode = true});
    draw_golden("40x8", (struct table){.columns = 40, .rows = 8, .unicode = true});
    draw_golden("1x1", (struct table){.columns = 1, .rows = 1, .unicode = true, .note = "q quits"});
}

static void test_ways(void **state)
{
    (void)state;
    draw_golden("ascii", (struct table){.columns = 80, .rows = 12});
    draw_golden("colours", (struct table){.columns = 80,
                                          .rows = 14,
                                          .unicode = true,
                                          .colours = true,
                                          .alarm = true,
                                          .note = "No server since 11:58:01, trying again: API server "
                                                  "https://example:6443: connection refused"});
    draw_golden("namespaces",
                (struct table){
                    .columns = 110, .rows = 14, .unicode = true, .with_ns = true, .what = "all namespaces"});
}

static void test_empty(void **state)
{
    struct board b;
    cleanup_buf struct buf out = BUF_INIT(TABLE_BYTES_MAX);
    struct table s = {.columns = 80, .rows = 24, .what = "namespace team"};

    (void)state;
    board_init(&b);
    draw(&s, &b, &out);
    assert_string_equal(buf_str(&out), "0 training jobs in namespace team\n");
    buf_clear(&out);
    s.waiting = true;
    draw(&s, &b, &out);
    assert_string_equal(buf_str(&out), "Reading the training jobs in namespace team\n");
    board_release(&b);
}

/* Of any size, the lines fit, and every job is shown or counted. */
static void test_every_size_fits(void **state)
{
    struct board b;
    const int64_t now = fill(&b);

    (void)state;
    for (int columns = TABLE_COLUMNS_MIN; columns < 220; columns += 7)
        for (int rows = TABLE_ROWS_MIN; rows < 30; rows++) {
            cleanup_buf struct buf out = BUF_INIT(TABLE_BYTES_MAX);
            struct sv rest, line;
            int lines = 0;
            draw(&(struct table){.columns = columns,
                                 .rows = rows,
                                 .unicode = true,
                                 .with_ns = columns % 2,
                                 .what = "namespace team",
                                 .note = rows % 2 ? "q quits" : NULL,
                                 .selected = TABLE_NONE,
                                 .now_ms = now},
                 &b, &out);
            rest = (struct sv){buf_str(&out), out.len};
            while (sv_next(&rest, '\n', &line) && rest.p) {
                lines++;
                if (shown_columns(line) > (size_t)columns)
                    fail_msg("%d columns: %.*s", columns, (int)line.len, line.p);
            }
            assert_true(lines <= rows);
            assert_true(lines >= 9 + 2 || strstr(buf_str(&out), " more: "));
        }
    board_release(&b);
}

static const struct board_job *job_at(const struct board *b, int i)
{
    size_t n;
    struct board_job **jobs = board_sorted(b, &n);
    const struct board_job *j = jobs[i];

    free(jobs);
    return j;
}

/* The selected job is marked and on the screen, however few rows there are; the others are counted. */
static void test_selected(void **state)
{
    static const char MARK[] = "\x1b[7m";
    struct board b;
    const int64_t now = fill(&b);

    (void)state;
    for (int rows = 6; rows < 16; rows++)
        for (int i = 0; i < 9; i++) {
            cleanup_buf struct buf out = BUF_INIT(TABLE_BYTES_MAX);
            char want[64];
            draw(&(struct table){.columns = 80, .rows = rows, .what = "", .selected = i, .now_ms = now}, &b,
                 &out);
            const char *at = strstr(buf_str(&out), MARK);
            assert_non_null(at);
            assert_null(strstr(at + 1, MARK));
            assert_memory_equal(at + strlen(MARK), job_at(&b, i)->name, 3);
            snprintf(want, sizeof(want), "%d more: ", 9 - (rows - 3));
            assert_true(rows - 2 >= 9 || strstr(buf_str(&out), want));
        }
    board_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_selected), cmocka_unit_test(test_sizes),           cmocka_unit_test(test_ways),
        cmocka_unit_test(test_empty),    cmocka_unit_test(test_every_size_fits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
