/* torchrun.c - parse a container's own torchrun command, and move its options into torchrunConfig. */
#include "cli/convert/parts.h"

#include "common/sv.h"

#include <string.h>

enum { WORDS_MAX = 1024 };

/* The words of command and args, as the kernel would get them. */
static int words_of(const cJSON *container, const cJSON *ret[static WORDS_MAX])
{
    static const char *const KEYS[] = {"command", "args"};
    const cJSON *w;
    int n = 0;

    for (size_t i = 0; i < ARRAY_LEN(KEYS); i++)
        cJSON_ArrayForEach(w, json_child(container, KEYS[i]))
        {
            if (!cJSON_IsString(w) || n == WORDS_MAX)
                return -1;
            ret[n++] = w;
        }
    return n;
}

static bool is_program(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;

    return strncmp(base, name, strlen(name)) == 0 &&
           strspn(base + strlen(name), ".0123456789") == strlen(base + strlen(name));
}

static bool is_use_env(const char *word)
{
    return strcmp(word, "--use_env") == 0 || strcmp(word, "--use-env") == 0;
}

/* torchrun, or python [-u] -m torch.distributed.run. Its old name launch passes --local-rank to the program, which torchrun does
 * not, unless --use_env is given. */
static int options_at(const cJSON *const *words, int n)
{
    bool uses_env = false;
    int i = 1;

    if (n > 0 && is_program(words[0]->valuestring, "torchrun"))
        return 1;
    if (n == 0 || !is_program(words[0]->valuestring, "python"))
        return -1;
    while (i < n && strcmp(words[i]->valuestring, "-u") == 0)
        i++;
    for (int k = i + 2; k < n && !sv_ends(sv_from(words[k]->valuestring), ".py"); k++) /* its own options */
        uses_env |= is_use_env(words[k]->valuestring);
    if (i + 1 < n && strcmp(words[i]->valuestring, "-m") == 0 &&
        (strcmp(words[i + 1]->valuestring, "torch.distributed.run") == 0 ||
         (uses_env && strcmp(words[i + 1]->valuestring, "torch.distributed.launch") == 0)))
        return i + 2;
    return -1;
}

int convert_torchrun_at(const cJSON *container)
{
    const cJSON *words[WORDS_MAX];
    const int n = words_of(container, words);

    return n < 0 ? -1 : options_at(words, n);
}

bool convert_has_word(const cJSON *container, const char *word)
{
    const cJSON *words[WORDS_MAX];
    int n = words_of(container, words);

    while (n > 0 && strcmp(words[n - 1]->valuestring, word) != 0)
        n--;
    return n > 0;
}

/* An option without dashes, with '-' for '_'. */
static struct sv option_name(struct conversion *c, const char *word)
{
    char *name = arena_strdup(c->arena, word + strspn(word, "-"));

    name[strcspn(name, "=")] = '\0';
    for (char *p = name; *p; p++)
        *p = *p == '_' ? '-' : *p;
    return sv_from(name);
}

static bool one_of(struct sv name, const char *const *list)
{
    for (; *list; list++)
        if (sv_eq(name, *list))
            return true;
    return false;
}

void convert_add_extra(cJSON *torchrun, const char *word)
{
    cJSON *extra = json_child(torchrun, "extraOptions");

    extra = extra ? extra : cJSON_AddArrayToObject(torchrun, "extraOptions");
    cJSON_AddItemToArray(extra, cJSON_CreateString(word));
}

/* An option with its value (NULL: a flag) goes into torchrunConfig. */
static void take_option(struct conversion *c, const struct json_at *at, const char *word, struct sv name,
                        const char *value)
{
    static const char *const OPERATORS[] = {"nnodes",      "rdzv-endpoint", "rdzv-id",
                                            "node-rank",   "local-addr",    "master-addr",
                                            "master-port", "standalone",    NULL};
    static const char *const KEYS[][2] = {
        {"nproc-per-node", "procPerNode"}, {"rdzv-backend", "rdzvBackend"}, {"max-restarts", "maxRestarts"}};
    cJSON *torchrun = convert_object(c->spec, "torchrunConfig");
    int64_t n;

    if (one_of(name, OPERATORS)) {
        losses_add(c->losses, at, "torchrun's option %.40s is left out: the operator sets it", word);
        return;
    }
    for (size_t i = 0; value && i < ARRAY_LEN(KEYS); i++)
        if (sv_eq(name, KEYS[i][0])) {
            const bool number = i == 2 && sv_i64(sv_from(value), 0, INT32_MAX, &n);
            json_set(torchrun, KEYS[i][1],
                     number ? cJSON_CreateNumber((double)n) : cJSON_CreateString(value));
            return;
        }
    convert_add_extra(torchrun, word);
    if (value && !strchr(word, '='))
        convert_add_extra(torchrun, value);
}

void convert_torchrun(struct conversion *c, const struct json_at *at, cJSON *container)
{
    static const char *const FLAGS[] = {"m",          "module",  "no-python",          "run-path",
                                        "standalone", "use-env", "virtual-local-rank", NULL};
    const cJSON *words[WORDS_MAX];
    const int n = words_of(container, words);
    cJSON *args = cJSON_CreateArray();
    int i = n < 0 ? n : options_at(words, n);

    while (i >= 0 && i < n && words[i]->valuestring[0] == '-') {
        const char *word = words[i++]->valuestring;
        const struct sv name = option_name(c, word);
        const char *equals = strchr(word, '=');
        const char *value = equals                          ? equals + 1
                            : !one_of(name, FLAGS) && i < n ? words[i++]->valuestring
                                                            : NULL;
        if (!is_use_env(word)) /* torchrun does so always */
            take_option(c, at, word, name, value);
    }
    for (; i >= 0 && i < n; i++)
        cJSON_AddItemToArray(args, cJSON_CreateString(words[i]->valuestring));
    json_set(container, "command", NULL);
    json_set(container, "args", args);
}
