/* exposition.c - line by line; every line is HELP, TYPE or a sample. */
#include "exposition.h"
#include "common/cleanup.h"
#include "common/sv.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define NAME_CHARS LETTERS "0123456789:"

/* HELP and TYPE that the samples behind them belong to. */
struct head {
    char help[96], type_of[96], type[16];
};

/* A sample of this family: of its name, or for a histogram of one of its three. */
static bool belongs(const struct sample *s, const char *family)
{
    static const char *const PARTS[] = {"_bucket", "_sum", "_count"};
    size_t len = strlen(family);

    if (strcmp(s->type, "histogram") != 0)
        return strcmp(s->family, family) == 0;
    for (size_t i = 0; i < ARRAY_LEN(PARTS); i++)
        if (strncmp(s->family, family, len) == 0 && strcmp(s->family + len, PARTS[i]) == 0)
            return true;
    return false;
}

static void check_name(const char *line, size_t len)
{
    if (len == 0 || len >= 96 || !strchr(LETTERS, line[0]))
        fail_msg("bad name: %s", line);
}

static void read_comment(struct head *h, const struct exposition *e, const char *line)
{
    char name[96];
    char rest[256];

    if (sscanf(line, "# HELP %95s %255[^\n]", name, rest) == 2) {
        for (int i = 0; i < e->n; i++)
            if (belongs(&e->samples[i], name))
                fail_msg("%s has samples in two places", name);
        memcpy(h->help, name, sizeof(name));
    } else if (sscanf(line, "# TYPE %95s %15s", name, h->type) == 2) {
        memcpy(h->type_of, name, sizeof(name));
        assert_string_equal(h->help, name);
        assert_true(strcmp(h->type, "counter") == 0 || strcmp(h->type, "gauge") == 0 ||
                    strcmp(h->type, "histogram") == 0);
        size_t len = strlen(name);
        bool total = len > 6 && strcmp(name + len - 6, "_total") == 0;
        if (total != (strcmp(h->type, "counter") == 0))
            fail_msg("%s is a %s", name, h->type);
    } else {
        fail_msg("neither HELP nor TYPE: %s", line);
    }
}

/* The bytes of a label's value up to its closing quote; backslash, quote and line feed stand there escaped. */
static size_t value_length(const char *line, const char *at)
{
    size_t n = 0;

    while (at[n] && at[n] != '"' && at[n] != '\n') {
        if (at[n] == '\\' && (!at[n + 1] || !strchr("\\\"n", at[n + 1])))
            fail_msg("bad escape: %s", line);
        n += at[n] == '\\' ? 2 : 1;
    }
    return n;
}

/* name="value",name="value" up to the closing brace; returns what is behind it. */
static const char *read_labels(struct sample *s, const char *line, const char *at)
{
    const char *begin = at;

    for (;;) {
        size_t name = strspn(at, NAME_CHARS);
        check_name(at, name);
        at += name;
        if (strncmp(at, "=\"", 2) != 0)
            fail_msg("bad labels: %s", line);
        size_t value = value_length(line, at + 2);
        if (at[2 + value] != '"')
            fail_msg("bad labels: %s", line);
        at += 3 + value;
        if (*at != ',')
            break;
        at++;
    }
    if (*at != '}')
        fail_msg("no closing brace: %s", line);
    assert_true((size_t)(at - begin) < sizeof(s->labels));
    memcpy(s->labels, begin, (size_t)(at - begin));
    return at + 1;
}

static void read_sample(const struct head *h, struct exposition *e, const char *line)
{
    size_t name = strspn(line, NAME_CHARS);
    const char *at = line + name;

    check_name(line, name);
    assert_true(e->n < EXPOSITION_SAMPLES_MAX);
    struct sample *s = &e->samples[e->n];
    *s = (struct sample){0};
    memcpy(s->family, line, name);
    if (*at == '{')
        at = read_labels(s, line, at + 1);
    if (*at != ' ' || !sv_f64(sv_from(at + 1), &s->value) || s->value < 0)
        fail_msg("bad value: %s", line);
    memcpy(s->type, h->type, sizeof(s->type));
    if (!belongs(s, h->type_of))
        fail_msg("a sample without HELP and TYPE before it: %s", line);
    for (int i = 0; i < e->n; i++)
        if (strcmp(e->samples[i].family, s->family) == 0 && strcmp(e->samples[i].labels, s->labels) == 0)
            fail_msg("twice: %s", line);
    e->n++;
}

/* Splits `labels` before its last one, which must be le. */
static double bound_of(const struct sample *s, char rest[EXPOSITION_LABELS_BYTES])
{
    const char *le = strstr(s->labels, "le=\"");
    double bound;

    if (!le || !strchr(le + 4, '"') || strchr(le + 4, '"')[1])
        fail_msg("%s{%s}: expected le as its last label", s->family, s->labels);
    size_t before = (size_t)(le - s->labels);
    snprintf(rest, EXPOSITION_LABELS_BYTES, "%.*s", before ? (int)before - 1 : 0, s->labels);
    if (strcmp(le, "le=\"+Inf\"") == 0)
        return INFINITY;
    if (!sv_f64((struct sv){le + 4, strlen(le + 4) - 1}, &bound))
        fail_msg("%s{%s}: le is no number", s->family, s->labels);
    return bound;
}

/* The bucket behind samples[i] of the same series; the last one must be +Inf, and agree with _count. */
static void check_bucket(const struct exposition *e, int i)
{
    const struct sample *s = &e->samples[i];
    char rest[EXPOSITION_LABELS_BYTES];
    char other[EXPOSITION_LABELS_BYTES] = "";
    double bound = bound_of(s, rest);
    char family[96];

    if (!isinf(bound)) {
        if (i + 1 >= e->n || strcmp(e->samples[i + 1].family, s->family) != 0 ||
            bound_of(&e->samples[i + 1], other) <= bound || strcmp(rest, other) != 0)
            fail_msg("%s{%s}: the buckets of a series rise to +Inf", s->family, s->labels);
        if (e->samples[i + 1].value < s->value)
            fail_msg("%s{%s}: buckets count what is below them too", s->family, s->labels);
        return;
    }
    size_t len = strlen(s->family) - strlen("_bucket");
    snprintf(family, sizeof(family), "%.*s_count", (int)len, s->family);
    if (exposition_value(e, family, rest) != s->value)
        fail_msg("%s{%s} and %s differ", s->family, s->labels, family);
    snprintf(family, sizeof(family), "%.*s_sum", (int)len, s->family);
    (void)exposition_value(e, family, rest);
}

static void check_histograms(const struct exposition *e)
{
    for (int i = 0; i < e->n; i++) {
        const char *part = strrchr(e->samples[i].family, '_');
        if (strcmp(e->samples[i].type, "histogram") == 0 && strcmp(part, "_bucket") == 0)
            check_bucket(e, i);
    }
}

void exposition_parse(struct exposition *e, const char *text)
{
    struct head head = {0};
    char line[512];

    e->n = 0;
    while (*text) {
        const char *end = strchr(text, '\n');
        if (!end || (size_t)(end - text) >= sizeof(line))
            fail_msg("a line without an end, or too long: %.80s", text);
        snprintf(line, sizeof(line), "%.*s", (int)(end - text), text);
        if (line[0] == '#')
            read_comment(&head, e, line);
        else
            read_sample(&head, e, line);
        text = end + 1;
    }
    check_histograms(e);
}

double exposition_value(const struct exposition *e, const char *family, const char *labels)
{
    for (int i = 0; i < e->n; i++)
        if (strcmp(e->samples[i].family, family) == 0 && strcmp(e->samples[i].labels, labels) == 0)
            return e->samples[i].value;
    fail_msg("no %s{%s}", family, labels);
    return 0;
}
