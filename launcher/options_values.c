/* options_values.c - take one text per option from argv and from PET_* variables. */
#include "common/sv.h"
#include "launcher/options_read.h"

#include <stdint.h>
#include <string.h>

bool options_is_launch(const char *argv0)
{
    const char *slash = strrchr(argv0, '/');
    const char *name = slash ? slash + 1 : argv0;

    return strcmp(name, "launch") == 0 || strcmp(name, "torch.distributed.launch") == 0;
}

/* Take defaults from PET_NPROC_PER_NODE and so on; an empty one counts as not set. A flag's value is a number, 0 for off. */
static int read_defaults(const struct options_host *host, struct arena *a, struct option_values *v,
                         struct err *err)
{
    for (int i = 0; i < N_OPTIONS; i++) {
        const struct option_row *o = &option_rows[i];
        const char *text = o->env ? host->get(o->env) : NULL;
        int64_t on = 1;
        if (!text || !sv_trim(sv_from(text)).len)
            continue;
        v->text[i] = arena_strdup(a, text);
        v->from_env[i] = true;
        if (!o->value && !sv_i64(sv_trim(sv_from(text)), INT32_MIN, INT32_MAX, &on))
            return option_bad(v, i, err, "0 or 1");
        if (!on)
            v->text[i] = NULL;
    }
    return 0;
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
 * have them. As in PyTorch's, some options with an empty value ("--log-dir=$UNSET") count as not given. */
static void trim_values(struct option_values *v, struct arena *a)
{
    for (int i = 0; i < N_OPTIONS; i++) {
        const struct sv text = sv_trim(sv_from(v->text[i] ? v->text[i] : ""));
        if (v->text[i] && i != OPT_LOG_LINE_PREFIX_TEMPLATE && i != OPT_DUPLICATE_STDOUT_FILTERS &&
            i != OPT_DUPLICATE_STDERR_FILTERS)
            v->text[i] = arena_strndup(a, text.p, text.len);
        if (!text.len && (i == OPT_RDZV_ID || i == OPT_LOG_DIR || i == OPT_LOCAL_RANKS_FILTER))
            v->text[i] = NULL;
    }
}

int option_values_parse(int argc, char *const *argv, const struct options_host *host, struct arena *a,
                        struct option_values *ret, struct err *err)
{
    const char *manual = options_is_launch(argv[0]) ? "launch --help" : "torchrun --help";
    struct options_reader r = {{option_rows}, argc, argv, .at = 1, .manual = manual, .argparse = true};
    struct option_values v = {0};
    struct option_given g;
    bool answers = false;
    int rc = 0;

    if (read_defaults(host, a, &v, err) < 0)
        return -1;
    while (!answers && (rc = options_next(&r, &g, err)) > 0 && g.row) {
        const ptrdiff_t id = g.row - option_rows;
        v.text[id] = g.value ? g.value : "1";
        v.from_env[id] = false;
        answers = id == OPT_HELP || id == OPT_VERSION || id == OPT_PRINT_COMPLETION || id == OPT_INSTALL_TO;
    }
    if (rc < 0)
        return -1;
    trim_values(&v, a);
    v.rest = argv + (rc > 0 && !g.row ? r.at - 1 : argc);
    if (!r.ended)
        v.rest = program_words(v.rest, a);
    *ret = v;
    return 0;
}
