/* options.c - read a command line by a table of options. */
#include "common/options.h"

#include "common/nearest.h"
#include "common/text.h"

#include <string.h>

/* The given name is a beginning of the other, or all of it. */
static bool begins(struct sv given, const char *name)
{
    for (size_t i = 0; i < given.len; i++)
        if (given.p[i] != name[i] && !(strchr("-_", given.p[i]) && name[i] && strchr("-_", name[i])))
            return false;
    return true;
}

const struct option_row *option_find(const struct option_row *list, struct sv name, char letter)
{
    for (const struct option_row *o = list; o && o->name; o++)
        if (letter ? o->letter == letter : begins(name, o->name) && !o->name[name.len])
            return o;
    return NULL;
}

const struct option_row *options_find(const struct option_row *const lists[static OPTIONS_LISTS],
                                      struct sv name, char letter)
{
    const struct option_row *found = NULL;

    for (int i = 0; i < OPTIONS_LISTS && !found; i++)
        found = option_find(lists[i], name, letter);
    return found;
}

/* `letter`: the one in the word that is not known; NULL: it is a name. */
static int unknown(const struct options_reader *r, const char *word, const char *letter, struct err *err)
{
    const size_t dashes = letter ? 1 : 2;
    uint32_t c;
    struct nearest near = nearest_to((struct sv){word + dashes, strcspn(word + dashes, "=")});
    char hint[NEAREST_HINT_BYTES];

    if (letter && !options_find(r->lists, near.given, '\0')) /* what is behind it may be its value */
        return err_set(err, ERR_INVALID, "%.*s: unknown option (%.80s)",
                       (int)((size_t)(letter - word) + text_character(letter, strlen(letter), &c)), word,
                       r->manual);
    for (int i = 0; i < OPTIONS_LISTS; i++)
        for (const struct option_row *o = r->lists[i]; o && o->name; o++)
            if (!(o->needs & r->lacks))
                nearest_offer(&near, o->name);
    return err_set(err, ERR_INVALID, "%.*s: unknown option%s (%.80s)",
                   (int)(near.given.len < 80 ? dashes + near.given.len : 80), word,
                   nearest_hint(&near, "--", hint), r->manual);
}

/* As argparse: the only option whose name begins so. NULL: *err says why there is none. */
static const struct option_row *find_beginning(const struct options_reader *r, const char *word,
                                               struct sv name, struct err *err)
{
    const struct option_row *found = NULL;
    char list[ERR_MSG_BYTES / 2] = "";
    int n = 0;

    for (int i = 0; i < OPTIONS_LISTS && r->argparse && name.len; i++)
        for (const struct option_row *o = r->lists[i]; o && o->name; o++)
            if (begins(name, o->name)) {
                text_add(list, sizeof(list), "%s--%s", n++ ? ", " : "", o->name);
                found = o;
            }
    if (n == 1)
        return found;
    if (n)
        err_set(err, ERR_INVALID, "--%.*s: expected one of %s", (int)name.len, name.p, list);
    else
        unknown(r, word, NULL, err);
    return NULL;
}

/* To argparse a word is a value unless it looks like an option: "-x", but not "-", "-1", "-.5" or "-a b". */
static bool is_value(const struct options_reader *r, const char *word)
{
    const char *number = word + 1 + strspn(word + (*word == '-'), "0123456789");

    if (!r->argparse || word[0] != '-' || !word[1] || strchr(word, ' '))
        return true;
    return (!*number && number > word + 1) ||
           (*number == '.' && number[1] && strspn(number + 1, "0123456789") == strlen(number + 1));
}

/* The option of `word`, whose value is `value`, else the next word. */
static int take(struct options_reader *r, const struct option_row *o, const char *word, const char *value,
                struct option_given *ret, struct err *err)
{
    const char *next = r->at < r->argc ? r->argv[r->at] : NULL;

    if (value && !o->value)
        return err_set(err, ERR_INVALID, "--%s takes no value", o->name);
    if (!value && o->value && !o->optional) {
        if (!next || !is_value(r, next))
            return err_set(err, ERR_INVALID, "%.80s: expected a value: --%s=%s", word, o->name, o->value);
        value = next;
        r->at++;
    }
    *ret = (struct option_given){o, value};
    return 1;
}

static int take_letter(struct options_reader *r, const char *word, struct option_given *ret, struct err *err)
{
    const char *letter = r->letters, *value = letter[1] ? letter + 1 + (letter[1] == '=') : NULL;
    const struct option_row *o = options_find(r->lists, (struct sv){0}, *letter);

    r->letters = NULL;
    if (!o)
        return unknown(r, word, letter, err);
    if (!o->value && value && letter[1] != '=') {
        r->letters = value;
        value = NULL;
    }
    return take(r, o, word, value, ret, err);
}

int options_next(struct options_reader *r, struct option_given *ret, struct err *err)
{
    if (r->letters)
        return take_letter(r, r->argv[r->at - 1], ret, err);
    if (!r->ended && r->at < r->argc && strcmp(r->argv[r->at], "--") == 0) {
        r->ended = true;
        r->at++;
    }
    if (r->at >= r->argc)
        return 0;
    const char *word = r->argv[r->at++];
    if (r->ended || word[0] != '-' || !word[1]) {
        *ret = (struct option_given){NULL, word};
        return 1;
    }
    if (word[1] != '-') {
        r->letters = word + 1;
        return take_letter(r, word, ret, err);
    }
    const struct sv name = {word + 2, strcspn(word + 2, "=")};
    const struct option_row *o = options_find(r->lists, name, '\0');
    if (!o && !(o = find_beginning(r, word, name, err)))
        return -1;
    return take(r, o, word, word[2 + name.len] ? word + 2 + name.len + 1 : NULL, ret, err);
}

int option_set(const struct option_given *g, void *fields, struct err *err)
{
    return g->row->set((char *)fields + g->row->offset, g->row, g->value, err);
}

int option_flag(void *field, const struct option_row *o, const char *value, struct err *err)
{
    (void)o, (void)value, (void)err;
    *(bool *)field = true;
    return 0;
}

int option_bool(void *field, const struct option_row *o, const char *value, struct err *err)
{
    const bool no = value && strcmp(value, "false") == 0;

    if (value && !no && strcmp(value, "true") != 0)
        return err_set(err, ERR_INVALID, "--%s: expected true or false, got \"%.60s\"", o->name, value);
    *(bool *)field = !no;
    return 0;
}

int option_text(void *field, const struct option_row *o, const char *value, struct err *err)
{
    (void)o, (void)err;
    *(const char **)field = value;
    return 0;
}

int option_integer(void *field, const struct option_row *o, const char *value, struct err *err)
{
    if (!sv_i64(sv_from(value), o->min, o->max, field))
        return err_set(err, ERR_INVALID, "--%s: expected an integer %lld..%lld, got \"%.60s\"", o->name,
                       (long long)o->min, (long long)o->max, value);
    return 0;
}

int option_number(void *field, const struct option_row *o, const char *value, struct err *err)
{
    double number;

    if (!sv_f64(sv_from(value), &number) || !(number >= o->least && number <= o->most))
        return err_set(err, ERR_INVALID, "--%s: expected a number %g..%g, got \"%.60s\"", o->name, o->least,
                       o->most, value);
    *(double *)field = number;
    return 0;
}

int option_choice(void *field, const struct option_row *o, const char *value, struct err *err)
{
    struct nearest near = nearest_to(sv_from(value));
    char expected[160] = "", hint[NEAREST_HINT_BYTES];

    for (int i = 0; o->words[i]; i++) {
        if (strcmp(value, o->words[i]) == 0) {
            *(int *)field = (int)o->min + i;
            return 0;
        }
        text_add(expected, sizeof(expected), "%s%s", !i ? "" : o->words[i + 1] ? ", " : " or ", o->words[i]);
    }
    nearest_offer_all(&near, o->words);
    return err_set(err, ERR_INVALID, "--%s: expected %s, got \"%.60s\"%s", o->name, expected, value,
                   nearest_hint(&near, "", hint));
}
