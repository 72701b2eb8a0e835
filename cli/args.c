/* args.c - parse the command line of kubectl-ptj by the table of verbs. */
#include "cli/args.h"

#include "common/memory.h"
#include "common/nearest.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const struct option_row *find(const struct verb *verb, struct sv name, char letter)
{
    const struct option_row *lists[OPTIONS_LISTS];

    verb_options(verb, lists);
    return options_find(lists, name, letter);
}

const struct option_row *args_option(const struct verb *verb, const char *word)
{
    if (word[0] != '-' || !word[1])
        return NULL;
    if (word[1] == '-')
        return find(verb, sv_from(word + 2), '\0');
    return word[2] ? NULL : find(verb, (struct sv){0}, word[1]);
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

/* A value that the row refuses is a wrong command line. */
static int keep(struct args *a, const struct option_given *g, struct err *err)
{
    union {
        int64_t integer;
        int choice;
    } ignored;
    const struct option_row *o = g->row;
    int i = o->value && sv_ends(sv_from(o->value), "...") ? a->n_set : 0;

    if (o->set && o->set(&ignored, o, g->value, err) < 0)
        return -1;
    while (i < a->n_set && a->set[i].row != o)
        i++;
    if (i == ARGS_OPTIONS_MAX)
        return err_set(err, ERR_INVALID, "--%s: too many options", o->name);
    a->set[i] = (struct option_given){o, g->value ? g->value : ""};
    if (i == a->n_set)
        a->n_set++;
    a->help |= !strcmp(o->name, "help");
    a->version |= !strcmp(o->name, "version");
    return 0;
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
    char manual[96] = "kubectl ptj --help";
    struct options_reader r = {.argc = argc, .argv = argv, .at = 1, .manual = manual};
    struct option_given g;
    int rc;

    *a = (struct args){.operands = memory_must(calloc((size_t)argc + 1, sizeof(char *)))};
    verb_options(NULL, r.lists);
    while ((rc = options_next(&r, &g, err)) > 0) {
        if (g.row) {
            if (keep(a, &g, err) < 0)
                return -1;
        } else if (a->verb) {
            a->operands[a->n_operands++] = g.value;
        } else if (!strcmp(g.value, "help") || !strcmp(g.value, "version")) {
            *(g.value[0] == 'h' ? &a->help : &a->version) = true; /* as --help and --version */
        } else if ((a->verb = verb_find(g.value))) {
            verb_options(a->verb, r.lists);
            snprintf(manual, sizeof(manual), "kubectl ptj %s --help%s", a->verb->name,
                     strstr(a->verb->operands, "-- ") ? "; write -- before options to pass on" : "");
        } else {
            return no_such_verb(g.value, err);
        }
    }
    return rc < 0 ? -1 : check_operands(a, err);
}

void args_release(struct args *a)
{
    free(a->operands);
    *a = (struct args){0};
}

const char *args_each(const struct args *a, const char *option, int i)
{
    assert(find(a->verb, sv_from(option), '\0'));
    for (int k = 0; k < a->n_set; k++)
        if (!strcmp(a->set[k].row->name, option) && i-- == 0)
            return a->set[k].value;
    return NULL;
}

bool args_has(const struct args *a, const char *option)
{
    return args_each(a, option, 0);
}

const char *args_text(const struct args *a, const char *option, const char *fallback)
{
    const char *value = args_each(a, option, 0);

    return value ? value : fallback;
}

int64_t args_i64(const struct args *a, const char *option, int64_t fallback)
{
    const char *value = args_each(a, option, 0);

    if (value)
        (void)sv_i64(sv_from(value), INT64_MIN, INT64_MAX, &fallback); /* which option_integer has checked */
    return fallback;
}
