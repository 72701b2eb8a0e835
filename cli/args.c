/* args.c - parse the command line of kubectl-ptj by the table of verbs. */
#include "cli/args.h"
#include "cli/usage.h"

#include "common/memory.h"
#include "common/nearest.h"
#include "common/sv.h"

#include <assert.h>
#include <string.h>

/* A word of the command line cut at '='. */
struct word {
    const char *text;
    struct sv name;    /* without dashes */
    const char *value; /* behind '='; NULL: none */
};

/* By its letter; '\0': by its name. */
static const struct verb_option *find(const struct verb *verb, struct sv name, char letter)
{
    const struct verb_options all = verb_options(verb);

    for (size_t i = 0; i < ARRAY_LEN(all.lists); i++)
        for (const struct verb_option *o = all.lists[i]; o && o->name; o++)
            if (letter ? o->letter == letter : sv_eq(name, o->name))
                return o;
    return NULL;
}

const struct verb_option *args_option(const struct verb *verb, const char *word)
{
    if (word[0] != '-' || !word[1])
        return NULL;
    if (word[1] == '-')
        return find(verb, sv_from(word + 2), '\0');
    return word[2] ? NULL : find(verb, (struct sv){0}, word[1]);
}

static int no_such_option(const struct args *a, const struct word *w, struct err *err)
{
    const struct verb_options all = verb_options(a->verb);
    struct nearest near = nearest_to(w->name);
    char hint[NEAREST_HINT_BYTES];

    for (size_t i = 0; i < ARRAY_LEN(all.lists); i++)
        for (const struct verb_option *o = all.lists[i]; o && o->name; o++)
            nearest_offer(&near, o->name);
    return err_set(err, ERR_INVALID, "%.80s: unknown option%s (kubectl ptj %s%s--help)", w->text,
                   nearest_hint(&near, "--", hint), a->verb ? a->verb->name : "", a->verb ? " " : "");
}

static int no_such_verb(const char *given, struct err *err)
{
    struct nearest near = nearest_to(sv_from(given));
    char hint[NEAREST_HINT_BYTES];

    if (verb_instead(given))
        return err_set(err, ERR_INVALID, "%s: unknown verb; type %s", given, verb_instead(given));
    for (int i = 0; VERBS[i]; i++)
        nearest_offer(&near, VERBS[i]->name);
    return err_set(err, ERR_INVALID, "%.80s: unknown verb%s (kubectl ptj --help lists them)", given,
                   nearest_hint(&near, "", hint));
}

static bool repeats(const struct verb_option *o)
{
    return o->value && sv_ends(sv_from(o->value), "...");
}

static int keep(struct args *a, const struct verb_option *o, const char *value, struct err *err)
{
    int i = repeats(o) ? a->n_set : 0;

    while (i < a->n_set && a->set[i].option != o)
        i++;
    if (i == ARGS_OPTIONS_MAX)
        return err_set(err, ERR_INVALID, "--%s: too many options", o->name);
    a->set[i].option = o;
    a->set[i].value = value;
    if (i == a->n_set)
        a->n_set++;
    a->help |= !strcmp(o->name, "help");
    a->version |= !strcmp(o->name, "version");
    return 0;
}

/* One option, whose value may be the next word. Returns how many words it took beyond its own, or -1. */
static int take(struct args *a, const struct verb_option *o, const struct word *w, const char *next,
                struct err *err)
{
    if (!o)
        return no_such_option(a, w, err);
    if (!o->value && w->value && o->help)
        return err_set(err, ERR_INVALID, "%.80s: --%s takes no value", w->text, o->name);
    if (!o->value)
        return keep(a, o, w->value ? w->value : "", err);
    if (!w->value && !next)
        return err_set(err, ERR_INVALID, "%.80s: expected a value: --%s=%s", w->text, o->name, o->value);
    if (keep(a, o, w->value ? w->value : next, err) < 0)
        return -1;
    return w->value ? 0 : 1;
}

static int take_word(struct args *a, const char *text, const char *next, struct err *err)
{
    struct word w = {.text = text};
    const char *equals = strchr(text, '=');

    if (text[1] == '-') {
        w.name = equals ? (struct sv){text + 2, (size_t)(equals - text - 2)} : sv_from(text + 2);
        w.value = equals ? equals + 1 : NULL;
        return take(a, find(a->verb, w.name, '\0'), &w, next, err);
    }
    w.name = (struct sv){text + 1, 1};
    w.value = text[2] == '=' ? text + 3 : text[2] ? text + 2 : NULL; /* -nteam is -n team */
    return take(a, find(a->verb, (struct sv){0}, text[1]), &w, next, err);
}

static int check_operands(const struct args *a, struct err *err)
{
    const struct verb *v = a->verb;

    if (!v || a->help || a->version)
        return 0;
    if (a->n_operands < v->operands_min)
        return err_set(err, ERR_INVALID, "%s: expected %s (kubectl ptj %s --help)", v->name, v->operands,
                       v->name);
    if (a->n_operands > v->operands_max)
        return err_set(err, ERR_INVALID, "%s: %.80s is one argument too many: expected %s", v->name,
                       a->operands[v->operands_max], v->operands[0] ? v->operands : "none");
    return 0;
}

int args_parse(struct args *a, int argc, char **argv, struct err *err)
{
    bool only_operands = false;

    *a = (struct args){.memory = memory_must(calloc((size_t)argc + 1, sizeof(char *)))};
    a->operands = a->memory;
    for (int i = 1; i < argc; i++) {
        const char *text = argv[i];
        if (!only_operands && !strcmp(text, "--")) {
            only_operands = true;
        } else if (!only_operands && text[0] == '-' && text[1]) {
            int took = take_word(a, text, argv[i + 1], err);
            if (took < 0)
                return -1;
            i += took;
        } else if (!a->verb && (!strcmp(text, "help") || !strcmp(text, "version"))) {
            *(text[0] == 'h' ? &a->help : &a->version) = true; /* as --help and --version */
        } else if (!a->verb) {
            if (!(a->verb = verb_find(text)))
                return no_such_verb(text, err);
        } else {
            a->memory[a->n_operands++] = text;
            only_operands |= a->verb->passes_on;
        }
    }
    return check_operands(a, err);
}

void args_release(struct args *a)
{
    free(a->memory);
    *a = (struct args){0};
}

static const char *value_of(const struct args *a, const char *option)
{
    assert(find(a->verb, sv_from(option), '\0'));
    for (int i = 0; i < a->n_set; i++)
        if (!strcmp(a->set[i].option->name, option))
            return a->set[i].value;
    return NULL;
}

bool args_has(const struct args *a, const char *option)
{
    return value_of(a, option);
}

const char *args_text(const struct args *a, const char *option, const char *fallback)
{
    const char *value = value_of(a, option);

    return value ? value : fallback;
}

const char *args_each(const struct args *a, const char *option, int i)
{
    assert(find(a->verb, sv_from(option), '\0'));
    for (int k = 0; k < a->n_set; k++)
        if (!strcmp(a->set[k].option->name, option) && i-- == 0)
            return a->set[k].value;
    return NULL;
}

int args_i64(const struct args *a, const char *option, int64_t min, int64_t max, int64_t *ret,
             struct err *err)
{
    const char *value = value_of(a, option);

    if (value && !sv_i64(sv_from(value), min, max, ret))
        return usage_wrong(err, "--%s: expected an integer %lld..%lld, got \"%.40s\"", option, (long long)min,
                           (long long)max, value);
    return 0;
}
