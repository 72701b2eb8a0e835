/* options_values.c - take one text per option from argv and from PET_* variables. */
#include "common/nearest.h"
#include "launcher/options.h"

#include <ctype.h>
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

/* Take defaults from PET_NPROC_PER_NODE and so on. A flag's value is a number, 0 for off. */
static void read_defaults(const struct options_host *host, struct arena *a, struct option_values *v)
{
    for (int i = 0; i < N_OPTIONS; i++) {
        char name[64] = "PET_";
        size_t n = strlen(name);
        if (i == OPT_HELP || i == OPT_VERSION || i == OPT_PRINT_COMPLETION)
            continue;
        for (const char *p = option_rows[i].name; *p && n < sizeof(name) - 1; p++)
            name[n++] = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
        name[n] = '\0';
        const char *text = host->get(name);
        if (!text || !*text || (!option_rows[i].meta && strcmp(text, "0") == 0))
            continue;
        v->text[i] = arena_strdup(a, text);
        v->from_env[i] = true;
    }
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

/* Parse the option at argv[*at]; *at becomes the index of its last word. */
static int read_option(char *const *argv, int *at, struct option_values *v, struct err *err)
{
    const char *word = argv[*at], *value = NULL;
    int id;

    if (word[1] == '-') {
        size_t len = strcspn(word + 2, "=");
        id = find_long(word + 2, len);
        if (id == AMBIGUOUS)
            return refuse_ambiguous(word, len, err);
        value = word[2 + len] ? word + 2 + len + 1 : NULL;
    } else {
        id = find_letter(word[1]);
        value = id >= 0 && word[2] ? word + 2 + (word[2] == '=') : NULL;
    }
    if (id < 0)
        return refuse(word, err);
    if (!option_rows[id].meta) {
        if (value)
            return err_set(err, ERR_INVALID, "--%s takes no value, got %.80s", option_rows[id].name, word);
        value = "1";
    } else if (!value) {
        value = argv[*at + 1];
        if (!value)
            return err_set(err, ERR_INVALID, "--%s: expected a value (%s) after it", option_rows[id].name,
                           option_rows[id].meta);
        (*at)++;
    }
    v->text[id] = value;
    v->from_env[id] = false;
    return 0;
}

int option_values_parse(int argc, char *const *argv, const struct options_host *host, struct arena *a,
                        struct option_values *ret, struct err *err)
{
    struct option_values v = {0};
    int at = 1;

    read_defaults(host, a, &v);
    for (; at < argc && argv[at][0] == '-' && argv[at][1]; at++) {
        if (strcmp(argv[at], "--") == 0) {
            at++;
            break;
        }
        if (read_option(argv, &at, &v, err) < 0)
            return -1;
        if (v.text[OPT_HELP] || v.text[OPT_VERSION] || v.text[OPT_PRINT_COMPLETION])
            break;
    }
    v.rest = argv + (at < argc ? at : argc);
    *ret = v;
    return 0;
}
