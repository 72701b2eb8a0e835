/* options_values.c - take one text per option from argv and from PET_* variables. */
#include "common/nearest.h"
#include "common/sv.h"
#include "launcher/options_read.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

bool options_is_launch(const char *argv0)
{
    const char *slash = strrchr(argv0, '/');
    const char *name = slash ? slash + 1 : argv0;

    return strcmp(name, "launch") == 0 || strcmp(name, "torch.distributed.launch") == 0;
}

/* The given name is a beginning of the option's; '_' equals '-'. */
static bool begins(const char *given, size_t len, const char *name)
{
    for (size_t i = 0; i < len; i++)
        if (given[i] != name[i] && !(given[i] == '_' && name[i] == '-'))
            return false;
    return true;
}

enum { UNKNOWN = -1, AMBIGUOUS = -2 };

/* The option of that name, or the only one that begins so. */
static int find_long(const char *given, size_t len)
{
    int found = UNKNOWN;

    for (int i = 0; i < N_OPTIONS && len; i++)
        if (begins(given, len, option_rows[i].name)) {
            if (!option_rows[i].name[len])
                return i;
            found = found == UNKNOWN ? i : AMBIGUOUS;
        }
    return found;
}

static int find_letter(char letter)
{
    for (int i = 0; i < N_OPTIONS; i++)
        if (letter && option_rows[i].letter == letter)
            return i;
    return -1;
}

/* PyTorch's reads no variable for these. */
static bool has_variable(int id)
{
    return id != OPT_HELP && id != OPT_VERSION && id != OPT_PRINT_COMPLETION && id != OPT_INSTALL_TO &&
           id != OPT_NUMA_BINDING && id != OPT_LOGS_SPECS && id != OPT_USE_ENV;
}

/* Take defaults from PET_NPROC_PER_NODE and so on; an empty one counts as not set. A flag's value is a number, 0 for off. */
static int read_defaults(const struct options_host *host, struct arena *a, struct option_values *v,
                         struct err *err)
{
    for (int i = 0; i < N_OPTIONS; i++) {
        char name[64] = "PET_";
        size_t n = strlen(name);
        int64_t on = 1;
        for (const char *p = option_rows[i].name; *p && n < sizeof(name) - 1; p++)
            name[n++] = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
        name[n] = '\0';
        const char *text = has_variable(i) ? host->get(name) : NULL;
        if (!text || !sv_trim(sv_from(text)).len)
            continue;
        v->text[i] = arena_strdup(a, text);
        v->from_env[i] = true;
        if (!option_rows[i].meta && !sv_i64(sv_trim(sv_from(text)), INT32_MIN, INT32_MAX, &on))
            return option_bad(v, i, err, "0 or 1");
        if (!on)
            v->text[i] = NULL;
    }
    return 0;
}

static int refuse(const char *word, struct err *err)
{
    const size_t dashes = word[1] == '-' ? 2 : 1;
    struct nearest near = nearest_to((struct sv){word + dashes, strcspn(word + dashes, "=")});
    char hint[NEAREST_HINT_BYTES];

    for (int i = 0; dashes == 2 && i < N_OPTIONS; i++)
        nearest_offer(&near, option_rows[i].name);
    return err_set(err, ERR_INVALID, "%.*s: unknown option%s (torchrun --help)",
                   (int)(near.given.len < 80 ? dashes + near.given.len : 80), word,
                   nearest_hint(&near, "--", hint));
}

static int refuse_ambiguous(const char *word, size_t len, struct err *err)
{
    char list[ERR_MSG_BYTES / 2] = "";

    for (int i = 0; i < N_OPTIONS; i++)
        if (begins(word + 2, len, option_rows[i].name)) {
            const size_t used = strlen(list);
            snprintf(list + used, sizeof(list) - used, "%s--%s", used ? ", " : "", option_rows[i].name);
        }
    return err_set(err, ERR_INVALID, "%.*s: expected one of %s", (int)(len + 2), word, list);
}

/* argparse takes a word for a value unless it looks like an option: "-x", but not "-", "-1", "-.5" or "-a b". */
static bool is_value(const char *word)
{
    const char *number = word + 1 + strspn(word + (*word == '-'), "0123456789");

    if (word[0] != '-' || !word[1] || strchr(word, ' '))
        return true;
    return (!*number && number > word + 1) ||
           (*number == '.' && number[1] && strspn(number + 1, "0123456789") == strlen(number + 1));
}

/* Take an option whose value is `value`, else the next word. */
static int take(char *const *argv, int *at, int id, const char *value, struct option_values *v,
                struct err *err)
{
    if (!option_rows[id].meta) {
        if (value)
            return err_set(err, ERR_INVALID, "--%s takes no value, got %.80s", option_rows[id].name,
                           argv[*at]);
        value = "1";
    } else if (!value) {
        value = argv[*at + 1];
        if (!value || !is_value(value))
            return err_set(err, ERR_INVALID, "--%s: expected a value (%s) after it", option_rows[id].name,
                           option_rows[id].meta);
        (*at)++;
    }
    v->text[id] = value;
    v->from_env[id] = false;
    return 0;
}

/* Letters: those of flags may be followed by others, as in -mt3. */
static int read_letters(char *const *argv, int *at, struct option_values *v, struct err *err)
{
    for (const char *p = argv[*at] + 1; *p; p++) {
        const int id = find_letter(*p);
        const char *rest = p[1] ? p + 1 + (p[1] == '=') : NULL;
        if (id < 0)
            return refuse(argv[*at], err);
        const bool more = !option_rows[id].meta && p[1] && p[1] != '=';
        if (take(argv, at, id, more ? NULL : rest, v, err) < 0)
            return -1;
        if (!more)
            return 0;
    }
    return 0;
}

/* Parse the option at argv[*at]; *at becomes the index of its last word. */
static int read_option(char *const *argv, int *at, struct option_values *v, struct err *err)
{
    const char *word = argv[*at];

    if (word[1] != '-')
        return read_letters(argv, at, v, err);
    const size_t len = strcspn(word + 2, "=");
    const int id = find_long(word + 2, len);
    if (id == AMBIGUOUS)
        return refuse_ambiguous(word, len, err);
    if (id < 0)
        return refuse(word, err);
    return take(argv, at, id, word[2 + len] ? word + 2 + len + 1 : NULL, v, err);
}

/* The program and its words, without a "--" between them: argparse drops the first one that is not among the words. */
static char *const *program_words(char *const *rest, struct arena *a)
{
    size_t n = 0;

    if (!rest[0] || !rest[1] || strcmp(rest[1], "--") != 0)
        return rest;
    while (rest[n])
        n++;
    char **words = arena_array(a, n, char *);
    words[0] = rest[0];
    memcpy(words + 1, rest + 2, (n - 1) * sizeof(*words)); /* and the NULL */
    return words;
}

/* ConfigMaps, files and shells leave blanks and newlines around values. A prefix, and texts that lines are searched for, may
 * have them. */
static void trim_values(struct option_values *v, struct arena *a)
{
    for (int i = 0; i < N_OPTIONS; i++) {
        const struct sv text = sv_trim(sv_from(v->text[i] ? v->text[i] : ""));
        if (v->text[i] && i != OPT_LOG_LINE_PREFIX_TEMPLATE && i != OPT_DUPLICATE_STDOUT_FILTERS &&
            i != OPT_DUPLICATE_STDERR_FILTERS)
            v->text[i] = arena_strndup(a, text.p, text.len);
    }
}

int option_values_parse(int argc, char *const *argv, const struct options_host *host, struct arena *a,
                        struct option_values *ret, struct err *err)
{
    struct option_values v = {0};
    bool ended = false;
    int at = 1;

    if (read_defaults(host, a, &v, err) < 0)
        return -1;
    for (; at < argc && argv[at][0] == '-' && argv[at][1]; at++) {
        if (strcmp(argv[at], "--") == 0) {
            at++;
            ended = true;
            break;
        }
        if (read_option(argv, &at, &v, err) < 0)
            return -1;
        if (v.text[OPT_HELP] || v.text[OPT_VERSION] || v.text[OPT_PRINT_COMPLETION] || v.text[OPT_INSTALL_TO])
            break;
    }
    trim_values(&v, a);
    v.rest = argv + (at < argc ? at : argc);
    if (!ended)
        v.rest = program_words(v.rest, a);
    *ret = v;
    return 0;
}
