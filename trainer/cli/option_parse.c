/* option_parse.c - parse a command line by a table of option rows. */
#include "common/nearest.h"
#include "trainer/cli/options.h"

#include <stdio.h>
#include <string.h>

/* "--batch-size" and "--batch_size" are the same. */
static bool same_name(struct sv given, const char *name)
{
    if (given.len != strlen(name))
        return false;
    for (size_t i = 0; i < given.len; i++)
        if ((given.p[i] == '-' ? '_' : given.p[i]) != name[i])
            return false;
    return true;
}

const struct option_row *option_find(const struct option_table *t, struct sv given)
{
    for (size_t i = 0; i < t->len; i++)
        if (t->row[i].name && same_name(given, t->row[i].name))
            return &t->row[i];
    return NULL;
}

/* What the kinds of words accept, in the order of their enums, from `first` on. */
static const struct choice {
    int first;
    const char *expected;
    const char *const *words; /* ended by NULL */
} CHOICES[] = {
    [OPTION_DATASET] = {DATASET_MNIST, "mnist or fashion-mnist",
                        (const char *const[]){"mnist", "fashion-mnist", NULL}},
    [OPTION_BACKEND] = {COLLECTIVES_GLOO, "gloo or nccl", (const char *const[]){"gloo", "nccl", NULL}},
    [OPTION_LOG_FORMAT] = {LOG_FORMAT_TEXT, "text or json", (const char *const[]){"text", "json", NULL}},
    [OPTION_PRECISION] = {0, "auto, f32, tf32 or bf16", config_precisions},
};

static int apply_choice(const struct option_row *o, const char *value, int *field, struct err *err)
{
    const struct choice *c = &CHOICES[o->kind];
    struct nearest near = nearest_to(sv_from(value));
    char hint[NEAREST_HINT_BYTES];

    for (int i = 0; c->words[i]; i++)
        if (strcmp(value, c->words[i]) == 0) {
            *field = c->first + i;
            return 0;
        }
    nearest_offer_all(&near, c->words);
    return err_set(err, ERR_INVALID, "--%s: expected %s, got \"%.60s\"%s", o->name, c->expected, value,
                   nearest_hint(&near, "", hint));
}

int option_apply(const struct option_row *o, const char *value, void *into, struct err *err)
{
    void *field = (char *)into + o->offset;
    double number;

    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return 0;
    case OPTION_INTEGER:
        if (!sv_i64(sv_from(value), o->min, o->max, field))
            return err_set(err, ERR_INVALID, "--%s: expected an integer %lld..%lld, got \"%.60s\"", o->name,
                           (long long)o->min, (long long)o->max, value);
        return 0;
    case OPTION_NUMBER:
        if (!sv_f64(sv_from(value), &number) || !(number >= o->min_number && number <= o->max_number))
            return err_set(err, ERR_INVALID, "--%s: expected a number %g..%g, got \"%.60s\"", o->name,
                           o->min_number, o->max_number, value);
        *(double *)field = number;
        return 0;
    case OPTION_TEXT:
        if (!value[0] || strlen(value) > 4000)
            return err_set(err, ERR_INVALID, "--%s: expected a path of 1..4000 bytes, got %zu", o->name,
                           strlen(value));
        *(const char **)field = value;
        return 0;
    case OPTION_GPT2_SIZE:
        return gpt2_size(value, field, err) ? err_wrap(err, "--%s", o->name) : 0;
    case OPTION_DATASET:
    case OPTION_BACKEND:
    case OPTION_LOG_FORMAT:
    case OPTION_PRECISION:
        return apply_choice(o, value, field, err);
    }
    return 0;
}

/* "--epoch" is none of the rows; those that may not be used here are not what was meant. */
static int refuse(const struct option_table *t, const void *into, struct sv given, struct err *err)
{
    struct nearest near = nearest_to(given);
    char hint[NEAREST_HINT_BYTES];
    struct err ignored;

    for (size_t i = 0; i < t->len; i++)
        if (t->row[i].name && (!t->check || !t->check(into, &t->row[i], &ignored)))
            nearest_offer(&near, t->row[i].name);
    return err_set(err, ERR_INVALID, "--%.*s: unknown option%s (trainer %.60s --help)",
                   given.len < 80 ? (int)given.len : 80, given.p, nearest_hint(&near, "--", hint), t->called);
}

int option_parse(const struct option_table *t, int argc, char *const *argv, void *into, struct err *err)
{
    for (int i = 0; i < argc; i++) {
        const char *arg = strcmp(argv[i], "-h") == 0 ? "--help" : argv[i];
        if (strncmp(arg, "--", 2) != 0) {
            if (arg[0] == '-' && arg[1])
                return err_set(err, ERR_INVALID, "\"%.80s\": expected an option (trainer %.60s --help)", arg,
                               t->called);
            if (t->word(into, arg, err))
                return -1;
            continue;
        }
        const char *equals = strchr(arg, '=');
        size_t len = equals ? (size_t)(equals - arg) : strlen(arg);
        const struct option_row *o = option_find(t, (struct sv){arg + 2, len - 2});
        if (!o)
            return refuse(t, into, (struct sv){arg + 2, len - 2}, err);
        const char *value = equals ? equals + 1 : NULL;
        if (!o->arg && value)
            return err_set(err, ERR_INVALID, "--%s: takes no value, got \"%.60s\"", o->name, value);
        if (o->arg && !value) {
            if (++i == argc)
                return err_set(err, ERR_INVALID, "--%s: needs a value (%s)", o->name, o->arg);
            value = argv[i];
        }
        if ((t->check && t->check(into, o, err)) || option_apply(o, value, into, err))
            return -1;
    }
    return 0;
}
