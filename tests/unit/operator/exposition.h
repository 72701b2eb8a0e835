/* exposition.h - test helper: Prometheus' text format 0.0.4, read as strictly as a scraper may.
 *
 * Ownership: an exposition is one plain struct; strings are copies.
 * Errors:    text that breaks the format fails the test: a sample without HELP and TYPE before it, a family in two
 *            places, a series twice, a counter whose name does not end in _total, a bad name, value or label, a histogram
 *            whose buckets do not rise to +Inf or differ from its _count, or that has no _sum.
 */
#ifndef TK_TESTS_OPERATOR_EXPOSITION_H
#define TK_TESTS_OPERATOR_EXPOSITION_H

enum { EXPOSITION_SAMPLES_MAX = 1024, EXPOSITION_LABELS_BYTES = 128 };

struct sample {
    char family[96];
    char labels[EXPOSITION_LABELS_BYTES]; /* as written, without braces */
    char type[16];
    double value;
};

struct exposition {
    struct sample samples[EXPOSITION_SAMPLES_MAX];
    int n;
};

void exposition_parse(struct exposition *e, const char *text);

/* The value of the one series of a family with exactly these labels; fails the test when it is not there. */
double exposition_value(const struct exposition *e, const char *family, const char *labels);

#endif
