/* test_merge.c - lines of several logs come out in order of time, whatever the pieces and breaks in which they came. */
#include "test.h"

#include "cli/logs/merge.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS = 5, LINES_MAX = 40, TEXT_MAX = 8192, ROUNDS = 300 };

static const int64_t BEGIN_MS = 1767225600000; /* 2026-01-01 */

struct log {
    char text[TEXT_MAX];
    size_t len, at;        /* at: what was fed of it in this answer */
    int64_t ms[LINES_MAX]; /* times of its lines, which never fall */
    size_t starts[LINES_MAX];
    int n;
    int id;
};

static uint64_t dice(uint64_t *state, uint64_t n)
{
    return random_next(state) % n;
}

static void make_log(struct log *l, int name, uint64_t *state)
{
    int64_t ms = BEGIN_MS;

    *l = (struct log){.n = (int)dice(state, LINES_MAX)};
    for (int i = 0; i < l->n; i++) {
        char time[CLOCK_RFC3339_BYTES];
        ms += dice(state, 3) ? (int64_t)dice(state, 700) : 0;
        clock_rfc3339(ms, true, time);
        l->ms[i] = ms;
        l->starts[i] = l->len;
        l->len += (size_t)snprintf(l->text + l->len, TEXT_MAX - l->len, "%s %d:%d%.*s\n", time, name, i,
                                   (int)dice(state, 30), " ..............................");
    }
}

static void append(struct buf *out, const char *line, size_t len)
{
    struct err err;

    assert_int_equal(buf_append(out, line, len, &err), 0);
    assert_int_equal(buf_puts(out, "\n", &err), 0);
}

/* What has to come out: always the oldest head, of equal ones that of the first stream. */
static void merge_simply(const struct log *logs, struct buf *out)
{
    int at[STREAMS] = {0};

    for (;;) {
        int first = -1;
        for (int i = 0; i < STREAMS; i++)
            if (at[i] < logs[i].n && (first < 0 || logs[i].ms[at[i]] < logs[first].ms[at[first]]))
                first = i;
        if (first < 0)
            return;
        const char *line = logs[first].text + logs[first].starts[at[first]++];
        const char *text = strchr(line, ' ') + 1;
        append(out, text, strcspn(text, "\n"));
    }
}

static void drain(struct merge *m, int64_t now_ms, struct buf *out)
{
    struct merge_line line;

    while (merge_next(m, now_ms, &line))
        append(out, line.text.p, line.text.len);
}

/* As a server answers a request that begins with the second of the last line. */
static void ask_again(struct merge *m, struct log *l, bool live, int64_t now_ms)
{
    char since[MERGE_SINCE_BYTES];
    int64_t from_ms = 0;
    int i = 0;

    if (merge_since(m, l->id, since))
        assert_true(clock_parse_rfc3339(since, &from_ms));
    while (i < l->n && l->ms[i] < from_ms)
        i++;
    l->at = i < l->n ? l->starts[i] : l->len;
    merge_begin(m, l->id, live, now_ms);
}

/* True: that was its end. */
static bool feed_some(struct merge *m, struct log *l, uint64_t *state, int64_t now_ms)
{
    const size_t most = 1 + dice(state, 60), left = l->len - l->at, n = most < left ? most : left;

    if (dice(state, 12) == 0) {
        merge_end(m, l->id, false, now_ms);
        ask_again(m, l, false, now_ms);
        return false;
    }
    merge_feed(m, l->id, (struct sv){l->text + l->at, n}, now_ms);
    l->at += n;
    if (l->at < l->len)
        return false;
    merge_end(m, l->id, true, now_ms);
    merge_close(m, l->id);
    l->id = -1;
    return true;
}

static void run_round(uint64_t seed)
{
    static struct log logs[STREAMS];
    cleanup_buf struct buf want = BUF_INIT(1 << 20), got = BUF_INIT(1 << 20);
    struct merge *m = merge_new();
    uint64_t state = seed;
    int open = STREAMS;

    for (int i = 0; i < STREAMS; i++) {
        make_log(&logs[i], i, &state);
        logs[i].id = i;
        assert_true(merge_open(m, i, 0));
        merge_begin(m, i, false, 0);
    }
    merge_simply(logs, &want);
    while (open) {
        struct log *l = &logs[dice(&state, STREAMS)];
        if (l->id < 0)
            continue;
        open -= feed_some(m, l, &state, 0);
        if (dice(&state, 2))
            drain(m, 0, &got);
    }
    drain(m, 0, &got);
    assert_true(merge_is_empty(m));
    if (strcmp(buf_str(&want), buf_str(&got)) != 0)
        fail_msg("seed %llu: want\n%s\ngot\n%s", (unsigned long long)seed, buf_str(&want), buf_str(&got));
    merge_free(m);
}

static void test_any_pieces(void **ctx)
{
    (void)ctx;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++)
        run_round(seed);
}

static void feed(struct merge *m, int stream, const char *text, int64_t now_ms)
{
    merge_feed(m, stream, sv_from(text), now_ms);
}

static void expect(struct merge *m, int64_t now_ms, const char *want)
{
    struct merge_line line;

    if (!want) {
        assert_false(merge_next(m, now_ms, &line));
        return;
    }
    assert_true(merge_next(m, now_ms, &line));
    assert_int_equal(line.text.len, strlen(want));
    assert_memory_equal(line.text.p, want, line.text.len);
}

/* A silent stream that is followed holds the others back for the window, and no longer. */
static void test_window(void **ctx)
{
    struct merge *m = merge_new();
    const int a = 7, b = 0;

    (void)ctx;
    assert_true(merge_open(m, a, 0) && merge_open(m, b, 0));
    merge_begin(m, a, true, 0);
    merge_begin(m, b, true, 0);
    assert_int_equal(merge_due_ms(m, 0), INT64_MAX);
    feed(m, a, "2026-01-01T00:00:00.000000002Z second\n", 100);
    expect(m, 100, NULL);
    assert_int_equal(merge_due_ms(m, 100), 100 + MERGE_WINDOW_MS);
    feed(m, b, "2026-01-01T00:00:00.000000001Z first\n", 200);
    expect(m, 200, "first");
    expect(m, 99 + MERGE_WINDOW_MS, NULL);
    expect(m, 100 + MERGE_WINDOW_MS, "second");
    merge_free(m);
}

/* One that is read from its beginning holds them back for longer, but not for ever. */
static void test_patience(void **ctx)
{
    struct merge *m = merge_new();
    const int a = 7, b = 0;

    (void)ctx;
    assert_true(merge_open(m, a, 0) && merge_open(m, b, 0));
    merge_begin(m, a, true, 0);
    merge_begin(m, b, false, 0);
    feed(m, a, "2026-01-01T00:00:00Z second\n", 0);
    expect(m, MERGE_WINDOW_MS, NULL);
    feed(m, b, "2026-01-01", 1000);
    expect(m, MERGE_PATIENCE_MS, NULL);
    expect(m, 1000 + MERGE_PATIENCE_MS, "second");
    merge_free(m);
}

static void test_full(void **ctx)
{
    struct merge *m = merge_new();
    const int a = 0, b = 1;
    char line[200];
    int n = 0;

    (void)ctx;
    assert_true(merge_open(m, a, 0) && merge_open(m, b, 0));
    merge_begin(m, a, true, 0);
    merge_begin(m, b, true, 0);
    snprintf(line, sizeof(line), "2026-01-01T00:00:00Z %0150d\n", 0);
    for (; !merge_is_full(m, a); n++)
        feed(m, a, line, 0);
    assert_true((n - 1) * 170 <= MERGE_QUEUE_BYTES);
    expect(m, 0, strchr(line, ' ') ? (line[strlen(line) - 1] = '\0', strchr(line, ' ') + 1) : "");
    expect(m, 0, NULL);
    merge_free(m);
}

static void test_odd_lines(void **ctx)
{
    static char longer[MERGE_LINE_BYTES + 5000];
    struct merge *m = merge_new();
    struct merge_line line;
    const int a = 0;

    (void)ctx;
    assert_true(merge_open(m, a, 0));
    merge_begin(m, a, false, 0);
    feed(m, a, "2026-01-01T00:00:00.5+01:00 of another zone\n", 0);
    feed(m, a, "unable to retrieve container logs\n\n2026-01-01T00:00:01Z\n9999-01-01T00:00:00Z far\n", 0);
    assert_true(merge_next(m, 0, &line));
    assert_int_equal(line.ns, (BEGIN_MS - 3600000 + 500) * 1000000);
    expect(m, 0, "unable to retrieve container logs");
    expect(m, 0, "");
    expect(m, 0, "9999-01-01T00:00:00Z far");
    memset(longer, 'x', sizeof(longer) - 1);
    memcpy(longer, "2026-01-01T00:00:02Z ", 21);
    feed(m, a, longer, 0);
    feed(m, a,
         "\nunable to retrieve container logs for containerd://1\n"
         "failed to try resolving symlinks in path \"/0.log\": lstat /0.log: no such file or directory\n"
         "failed to open log file \"/0.log\": open /0.log: no such file or directory\n"
         "failed to open log file \"/0.log\": open /0.log: too many open files\n2026-01-01T00:00:03Z "
         "after it",
         0);
    assert_true(merge_next(m, 0, &line));
    assert_true(line.text.len < MERGE_LINE_BYTES + 64);
    assert_memory_equal(line.text.p + line.text.len - 22, "x [cut: a longer line]", 22);
    expect(m, 0, "failed to open log file \"/0.log\": open /0.log: too many open files");
    merge_end(m, a, true, 0);
    expect(m, 0, "after it");
    assert_false(merge_open(m, a, 0));
    merge_close(m, a);
    assert_true(merge_open(m, a, 0));
    merge_begin(m, a, false, 0);
    feed(m, a, "unable to retrieve container logs for containerd://2\n", 0);
    expect(m, 0, "unable to retrieve container logs for containerd://2");
    merge_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_pieces), cmocka_unit_test(test_window),    cmocka_unit_test(test_patience),
        cmocka_unit_test(test_full),       cmocka_unit_test(test_odd_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
