/* env.c - build the environment and arguments of a rank, as torchrun does. */
#include "launcher/env.h"
#include "common/contract.h"
#include "common/sv.h"
#include "host/rank_contract.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { OWN_MAX = 32 };

/* The variables of a rank: at most OWN_MAX that the launcher sets, then the inherited ones. */
struct set {
    char **vars;
    size_t n;
};

static void put(struct set *s, struct arena *a, const char *name, const char *value)
{
    if (s->n == OWN_MAX)
        abort();
    s->vars[s->n++] = arena_printf(a, "%s=%s", name, value);
}

static void put_int(struct set *s, struct arena *a, const char *name, int value)
{
    put(s, a, name, arena_printf(a, "%d", value));
}

static bool same_variable(const char *x, const char *y)
{
    size_t n = strcspn(x, "=");

    return strncmp(x, y, n + 1) == 0;
}

static const char *find(char *const *base, const char *name)
{
    size_t n = strlen(name);

    for (; *base; base++)
        if (strncmp(*base, name, n) == 0 && (*base)[n] == '=')
            return *base + n + 1;
    return NULL;
}

bool env_sets_omp(const struct options *o, char *const *base)
{
    return o->nproc > 1 && !find(base, "OMP_NUM_THREADS");
}

/* The entry of CUDA_VISIBLE_DEVICES for local rank `local` (options.c has checked that it exists); without
 * that variable, `local`. */
static char *own_device(char *const *base, int local, struct arena *a)
{
    const char *list = find(base, "CUDA_VISIBLE_DEVICES");
    struct sv rest = sv_from(list ? list : ""), entry = {"", 0};

    if (!list)
        return arena_printf(a, "%d", local);
    for (int i = 0; i <= local; i++)
        if (!rest.len || !sv_next(&rest, ',', &entry))
            entry = (struct sv){"", 0};
    entry = sv_trim(entry);
    return arena_strndup(a, entry.p, entry.len);
}

static void put_identity(struct set *s, const struct options *o, const struct env_round *round, int local,
                         struct arena *a)
{
    put_int(s, a, "RANK", round->first_rank + local);
    put_int(s, a, "LOCAL_RANK", o->virtual_local_rank ? 0 : local);
    put_int(s, a, "GROUP_RANK", round->node);
    put_int(s, a, "ROLE_RANK", round->first_of_role + local);
    put(s, a, "ROLE_NAME", o->role);
    put_int(s, a, "WORLD_SIZE", round->world);
    put_int(s, a, "LOCAL_WORLD_SIZE", o->nproc);
    put_int(s, a, "GROUP_WORLD_SIZE", round->nodes);
    put_int(s, a, "ROLE_WORLD_SIZE", round->role_world);
}

/* Whether ranks do not inherit the variable: it configures this launcher and not one that a rank may start,
 * or it names the memory file of a parent launcher, whose ranks alone may use it. */
static bool is_own(const char *variable)
{
    static const char *const own[] = {
        "TORCHELASTIC_ERROR_FILE=",  CONTRACT_ENV_TERMINATION_LOG "=", CONTRACT_ENV_KEPT_DATA "=",
        CONTRACT_ENV_RANK_STATE "=", CONTRACT_ENV_PROGRESS_PORT "=",   CONTRACT_ENV_PROGRESS_TIMEOUT "=",
        CONTRACT_ENV_NODE_ORDER "=", CONTRACT_ENV_JOB_KEY "=",         CONTRACT_ENV_KEY_FILE "="};

    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (same_variable(variable, own[i]))
            return true;
    return false;
}

char **env_build(const struct options *o, const struct env_round *round, int local, const char *error_file,
                 char *const *base, struct arena *a)
{
    size_t n = 0;

    while (base[n])
        n++;
    struct set s = {.vars = arena_array(a, OWN_MAX + n + 1, char *)};
    put_identity(&s, o, round, local, a);
    put(&s, a, "MASTER_ADDR", round->master_addr);
    put_int(&s, a, "MASTER_PORT", round->master_port);
    put_int(&s, a, "TORCHELASTIC_RESTART_COUNT", round->restart_count);
    put_int(&s, a, "TORCHELASTIC_MAX_RESTARTS", o->max_restarts);
    put(&s, a, "TORCHELASTIC_RUN_ID", round->run_id);
    /* Rank 0 serves PyTorch's store at MASTER_PORT, not the launcher. */
    put(&s, a, "TORCHELASTIC_USE_AGENT_STORE", "False");
    put(&s, a, "TORCHELASTIC_SIGNALS_TO_HANDLE", o->signals_text);
    if (error_file)
        put(&s, a, "TORCHELASTIC_ERROR_FILE", error_file);
    if (round->kept_data[0])
        put(&s, a, CONTRACT_ENV_KEPT_DATA, round->kept_data);
    if (round->key_file[0])
        put(&s, a, CONTRACT_ENV_KEY_FILE, round->key_file);
    if (round->rank_state[0])
        put(&s, a, CONTRACT_ENV_RANK_STATE, arena_printf(a, "%s/%d", round->rank_state, local));
    if (round->progress_file)
        put(&s, a, CONTRACT_ENV_PROGRESS_FILE, round->progress_file);
    /* The operator does not set these, since they may come from a ConfigMap. */
    if (find(base, CONTRACT_ENV_JOB_UID) && !find(base, "PYTHONUNBUFFERED"))
        put(&s, a, "PYTHONUNBUFFERED", "1");
    if (find(base, CONTRACT_ENV_JOB_UID) && !find(base, "NCCL_DEBUG"))
        put(&s, a, "NCCL_DEBUG", "WARN");
    if (!find(base, "TORCH_NCCL_ASYNC_ERROR_HANDLING"))
        put(&s, a, "TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
    if (o->progress_timeout_ms && !find(base, "PYTHONFAULTHANDLER"))
        put(&s, a, "PYTHONFAULTHANDLER", "1"); /* when a run hangs, the launcher aborts ranks to get their
                                                * stacks */
    if (env_sets_omp(o, base))
        put(&s, a, "OMP_NUM_THREADS", "1");
    if (o->virtual_local_rank)
        put(&s, a, "CUDA_VISIBLE_DEVICES", own_device(base, local, a));

    for (const size_t own = s.n; *base; base++) {
        bool ours = is_own(*base);
        for (size_t i = 0; i < own; i++)
            ours = ours || same_variable(s.vars[i], *base);
        if (!ours)
            s.vars[s.n++] = *base;
    }
    return s.vars;
}

/* The length of the name at `p`, after a '$': "{local_rank}" or "local_rank"; 0: another name. */
static size_t names_local_rank(const char *p)
{
    static const char braced[] = "{local_rank}", plain[] = "local_rank";

    if (strncmp(p, braced, strlen(braced)) == 0)
        return strlen(braced);
    const char after = strncmp(p, plain, strlen(plain)) == 0 ? p[strlen(plain)] : '_';
    return after == '_' || isalnum((unsigned char)after) ? 0 : strlen(plain);
}

/* Replace $local_rank and ${local_rank} in an argument. "$$" before the name becomes '$'. */
static char *substitute(const char *word, const char *local, struct arena *a)
{
    char *out = arena_alloc(a, strlen(word) + 1), *at = out; /* the number is shorter than the name */

    while (*word) {
        const bool hidden = word[0] == '$' && word[1] == '$';
        const size_t name = word[0] == '$' ? names_local_rank(word + 1 + hidden) : 0;
        if (name && !hidden) {
            at = stpcpy(at, local);
            word += 1 + name;
            continue;
        }
        if (hidden && !name)
            *at++ = '$';
        *at++ = *word;
        word += 1 + hidden;
    }
    return out;
}

char **env_arguments(const struct options *o, int local, const char *python, struct arena *a)
{
    static char unbuffered[] = "-u", module[] = "-m", command[] = "-c";
    static char run_path[] = "import runpy, sys; sys.argv = sys.argv[1:]; "
                             "runpy.run_path(sys.argv[0], run_name='__main__')";
    size_t n = 0;

    while (o->program[n])
        n++;
    char **words = arena_array(a, n + 6, char *), **at = words;
    if (o->program_kind != PROGRAM_EXECUTABLE) {
        *at++ = arena_strdup(a, python);
        *at++ = unbuffered;
    }
    if (o->program_kind == PROGRAM_PYTHON_MODULE)
        *at++ = module;
    if (o->program_kind == PROGRAM_PYTHON_RUN_PATH) {
        *at++ = command;
        *at++ = run_path;
    }
    const char *number = arena_printf(a, "%d", local);
    *at++ = o->program_kind == PROGRAM_EXECUTABLE ? o->program[0] : substitute(o->program[0], number, a);
    if (o->local_rank_argument)
        *at++ = arena_printf(a, "--local-rank=%d", local);
    for (size_t i = 1; i < n; i++)
        *at++ = substitute(o->program[i], number, a);
    return words;
}
