/* option_parse.c - set a configuration's fields by the words of a command line. */
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

const struct option_row *option_row(struct sv given)
{
    for (const struct option_row *o = option_table; o->name || o->group; o++)
        if (o->name && same_name(given, o->name))
            return o;
    return NULL;
}

static int apply_choice(const struct option_row *o, const char *value, int *field, struct err *err)
{
    const struct option_choice *c = o->choice;
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

static int apply(struct config *cfg, const struct option_row *o, const char *value, struct err *err)
{
    void *field = (char *)cfg + o->offset;
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
        if (!value[0] || strlen(value) > OPTION_TEXT_MAX)
            return err_set(err, ERR_INVALID, "--%s: expected a path of 1..%d bytes, got %zu", o->name,
                           OPTION_TEXT_MAX, strlen(value));
        *(const char **)field = value;
        return 0;
    case OPTION_GPT2_SIZE:
        return gpt2_size(value, field, err) ? err_wrap(err, "--%s", o->name) : 0;
    case OPTION_CHOICE:
        return apply_choice(o, value, field, err);
    }
    return 0;
}

/* May it be used with this model and these data? */
static int check(const struct config *cfg, const struct option_row *o, struct err *err)
{
    if (o->gpt2 && !cfg->gpt2.vocab)
        return err_set(err, ERR_INVALID, "--%s: the model is not a GPT-2 (model: {gpt2: ...})", o->name);
    if (o->tokens && cfg->data.format != &format_tokens)
        return err_set(err, ERR_INVALID, "--%s: the data are not tokens (data: {format: tokens, ...})",
                       o->name);
    return 0;
}

/* "--epoch" is none of the rows; those that may not be used here are not what was meant. */
static int refuse(const struct config *cfg, struct sv given, struct err *err)
{
    struct nearest near = nearest_to(given);
    char hint[NEAREST_HINT_BYTES];
    struct err ignored;

    for (const struct option_row *o = option_table; o->name || o->group; o++)
        if (o->name && !check(cfg, o, &ignored))
            nearest_offer(&near, o->name);
    return err_set(err, ERR_INVALID, "--%.*s: unknown option%s (trainer %.60s --help)",
                   given.len < 80 ? (int)given.len : 80, given.p, nearest_hint(&near, "--", hint),
                   cfg->called);
}

static int expected_option(const struct config *cfg, const char *text, struct err *err)
{
    return err_set(err, ERR_INVALID, "\"%.80s\": expected an option (trainer %.60s --help)", text,
                   cfg->called);
}

/* The option at argv[*i], and its value, which may be the next word. */
static int take_option(struct config *cfg, int argc, char *const *argv, int *i, struct err *err)
{
    const char *arg = strcmp(argv[*i], "-h") == 0 ? "--help" : argv[*i];
    const char *equals = strchr(arg, '=');
    const char *value = equals ? equals + 1 : NULL;
    const struct sv name = {arg + 2, (equals ? (size_t)(equals - arg) : strlen(arg)) - 2};

    if (arg[1] != '-')
        return expected_option(cfg, arg, err);
    const struct option_row *o = option_row(name);
    if (!o)
        return refuse(cfg, name, err);
    if (!o->arg && value)
        return err_set(err, ERR_INVALID, "--%s: takes no value, got \"%.60s\"", o->name, value);
    if (o->arg && !value) {
        if (++*i == argc)
            return err_set(err, ERR_INVALID, "--%s: needs a value (%s)", o->name, o->arg);
        value = argv[*i];
    }
    return check(cfg, o, err) || apply(cfg, o, value, err) ? -1 : 0;
}

/* A word that is no option is the value of the preset's next argument. */
static int take_word(struct config *cfg, int *used, const char *text, struct err *err)
{
    if (*used == cfg->positionals)
        return expected_option(cfg, text, err);
    const struct option_row *o = option_row(sv_from(cfg->positional[(*used)++]));
    return check(cfg, o, err) || apply(cfg, o, text, err) ? -1 : 0;
}

int config_options(int argc, char *const *argv, struct config *cfg, struct err *err)
{
    int rc = 0;

    for (int i = 0, used = 0; i < argc && !rc; i++)
        rc = argv[i][0] == '-' && argv[i][1] ? take_option(cfg, argc, argv, &i, err)
                                             : take_word(cfg, &used, argv[i], err);
    if (!rc && cfg->gpt2.vocab)
        gpt2_layers(&cfg->gpt2, &cfg->model);
    if (cfg->model.input.sequence)
        cfg->data.rows = cfg->model.input.rows;               /* what a window holds */
    if (cfg->data.format == &format_tokens && cfg->data.test) /* files validate instead of a share */
        cfg->data.split = (struct split_spec){0};
    return rc;
}
