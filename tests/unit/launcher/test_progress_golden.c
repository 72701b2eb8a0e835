/* test_progress_golden.c - real output of trainings: after every line, the percent, step and loss that the line says.
 *
 * tests/golden/progress/README.md says what the files are.
 */
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/fsutil.h"
#include "launcher/progress/progress.h"
#include "launcher/progress/recognise.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FOLDER TK_SOURCE_DIR "/tests/golden/progress"

struct row {
    int line;
    double percent, step, loss; /* NAN: none */
};

struct rows {
    struct row row[4096];
    int n;
};

static double number_or_none(const char *word)
{
    return strcmp(word, "-") == 0 ? NAN : atof(word);
}

/* The rows below "# NAME". */
static void read_rows(const char *path, const char *name, struct rows *rows)
{
    char text[256], percent[32], step[32], loss[32];
    bool inside = false;
    FILE *in = fopen(path, "r");

    rows->n = 0;
    if (!in)
        fail_msg("cannot open %s", path);
    while (fgets(text, sizeof(text), in)) {
        struct row *r = &rows->row[rows->n];
        text[strcspn(text, "\n")] = '\0';
        if (text[0] == '#') {
            inside = strcmp(text + 2, name) == 0;
        } else if (inside) {
            if (sscanf(text, "%d %31s %31s %31s", &r->line, percent, step, loss) != 4)
                fail_msg("%s: %s: %s", path, name, text);
            r->percent = number_or_none(percent);
            r->step = number_or_none(step);
            r->loss = number_or_none(loss);
            assert_true(++rows->n < (int)ARRAY_LEN(rows->row));
        }
    }
    fclose(in);
    if (!rows->n)
        fail_msg("%s has no rows of %s", path, name);
}

static void take(void *ctx, const struct progress_seen *s)
{
    progress_take(ctx, s, false, 0, 1);
}

/* silent: or nothing is shown. */
static bool near(double got, double want, double within, bool silent)
{
    return isnan(got) ? silent || isnan(want) : fabs(got - want) <= within;
}

static double count_or_none(int64_t n)
{
    return n < 0 ? NAN : (double)n;
}

struct share {
    int files, lines, wrong; /* wrong: lines that are not as wanted */
    int percents, right;     /* lines behind which a percent is wanted, and found */
};

static void compare(const char *name, const struct buf *out, const struct rows *want, bool silent,
                    struct share *share)
{
    struct recogniser r = {.len = 0};
    struct progress p;
    int line = 1, next = 0;
    struct row now = {0, NAN, NAN, NAN};

    progress_init(&p);
    for (size_t i = 0; i <= out->len; i++) {
        const char c = i < out->len ? out->data[i] : '\n';
        recogniser_take(&r, &c, 1, take, &p);
        if (c != '\n' && c != '\r')
            continue;
        if (next < want->n && want->row[next].line == line)
            now = want->row[next++];
        const double step = count_or_none(p.now.step);
        share->percents += !isnan(now.percent);
        share->right += near(p.now.percent, now.percent, 1, false) && !isnan(now.percent);
        if (!near(p.now.percent, now.percent, 1, silent) || !near(step, now.step, 0, silent) ||
            !near(p.now.loss, now.loss, 1e-6 * fabs(now.loss), silent)) {
            print_error("%s:%d: percent %g, step %g, loss %g; wanted %g, %g, %g\n", name, line, p.now.percent,
                        step, p.now.loss, now.percent, now.step, now.loss);
            share->wrong++;
        }
        line++;
    }
    assert_int_equal(next, want->n);
    share->lines += line - 1;
    share->files++;
}

/* Each NAME.out of the folder with its rows in want.txt. */
static void check_kind(const char *kind, bool silent, struct share *share)
{
    char folder[512], path[1024], rows[1024];
    static struct rows want;
    struct dirent **names = NULL;
    struct err err;

    snprintf(folder, sizeof(folder), FOLDER "/%s", kind);
    snprintf(rows, sizeof(rows), "%s/want.txt", folder);
    const int n = scandir(folder, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char *dot = strrchr(names[i]->d_name, '.');
        if (dot && strcmp(dot, ".out") == 0) {
            cleanup_buf struct buf out = BUF_INIT(1 << 20);
            snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
            assert_int_equal(fs_read(path, &out, &err), 0);
            *dot = '\0';
            read_rows(rows, names[i]->d_name, &want);
            compare(path + sizeof(FOLDER), &out, &want, silent, share);
        }
        free(names[i]);
    }
    free(names);
}

static void test_golden(void **state)
{
    static const char *const KINDS[] = {"trainer", "tqdm", "transformers", "lightning", "ddp-tutorial"};
    struct share share = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
        check_kind(KINDS[i], false, &share);
    print_message("%d files, %d lines, %d of them not as wanted\n", share.files, share.lines, share.wrong);
    assert_int_equal(share.wrong, 0);
    assert_true(share.files >= 20);
}

/* What the recognisers were not written for: right, or silent. */
static void test_public(void **state)
{
    struct share share = {0};

    (void)state;
    check_kind("public", true, &share);
    print_message("%d files, the percent is right behind %d of %d lines, wrong behind none\n", share.files,
                  share.right, share.percents);
    assert_int_equal(share.wrong, 0);
    assert_true(share.files >= 6);
}

enum figure { FIGURE_PERCENT, FIGURE_STEP, FIGURE_LOSS, FIGURE_SAMPLES, FIGURES };

/* "\t" in the file is a tab. */
static void untab(char *text)
{
    for (char *p; (p = strstr(text, "\\t")); text = p) {
        *p++ = '\t';
        memmove(p, p + 1, strlen(p));
    }
}

/* One row: PERCENT STEP LOSS SAMPLES LINE. */
static int check_line(struct progress *p, char *row, bool silent, double within_percent,
                      int right[static FIGURES])
{
    char word[FIGURES][32];
    int at = 0, wrong = 0;

    assert_int_equal(sscanf(row, "%31s %31s %31s %31s%n", word[0], word[1], word[2], word[3], &at), FIGURES);
    untab(row + at + 1);
    struct recogniser r = {.len = 0};
    recogniser_take(&r, row + at + 1, strlen(row + at + 1), take, p);
    const double shown[FIGURES] = {p->now.percent, count_or_none(p->now.step), p->now.loss,
                                   p->now.samples_per_second};
    for (int i = 0; i < FIGURES; i++) {
        const double want = number_or_none(word[i]);
        const double within = i == FIGURE_PERCENT ? within_percent : 1e-6 * fabs(want);
        const bool percent = i == FIGURE_PERCENT;
        right[i] += near(shown[i], want, within, false) && !isnan(want);
        wrong += percent && silent ? !isnan(shown[i]) : !near(shown[i], want, within, !percent);
    }
    if (wrong)
        print_error("percent %g, step %g, loss %g, samples/s %g; wanted %s, %s, %s, %s: %s", shown[0],
                    shown[1], shown[2], shown[3], word[0], word[1], word[2], word[3], row + at + 1);
    return wrong;
}

/* The lines of a file, a few of each program: none is wrong. Returns how many programs. */
static int check_lines(const char *name, bool silent, double within_percent)
{
    int right[FIGURES] = {0}, wrong = 0, programs = 0;
    char row[1024], path[512];
    struct progress p;

    snprintf(path, sizeof(path), FOLDER "/lines/%s.txt", name);
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    progress_init(&p);
    while (fgets(row, sizeof(row), in)) {
        programs += strncmp(row, "## ", 3) == 0;
        if (row[0] == '\n')
            progress_init(&p);
        else if (row[0] != '#')
            wrong += check_line(&p, row, silent, within_percent, right);
    }
    fclose(in);
    print_message(
        "%s: %d programs, right behind so many lines: percent %d, step %d, loss %d, samples/s %d; %d wrong\n",
        name, programs, right[0], right[1], right[2], right[3], wrong);
    assert_int_equal(wrong, 0);
    return programs;
}

static void test_lines(void **state)
{
    (void)state;
    assert_true(check_lines("known", false, 1) >= 20);
    assert_true(check_lines("silent", true, 1) >= 120);
    assert_true(check_lines("forms", false, 0.05) >= 38);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden), cmocka_unit_test(test_public),
                                       cmocka_unit_test(test_lines)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
