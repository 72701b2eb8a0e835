/* auth.c - decide when the credential plugin runs, and what its exit means for the requests that wait for it. */
#include "kube/auth/auth.h"

#include "common/backoff.h"
#include "common/memory.h"
#include "kube/auth/execcred.h"
#include "kube/auth/subprocess.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A credential that has expired when it comes is still used by those who waited for it. */
enum { SHORTEST_LIFE_MS = 1000, BACKOFF_MS = 1000 };

struct auth {
    struct kube_loop *loop;
    struct kube_config *config;
    void (*changed)(void *ctx);
    void *ctx;
    struct subprocess *child;
    uint64_t serial;         /* 0: none yet */
    int64_t expires_wall_ms; /* INT64_MAX: never */
    int64_t early_wall_ms;   /* from when a new one is wanted */
    int64_t least_ms;        /* monotonic: used until then, expired or not */
    int64_t not_before_ms;   /* monotonic: no run until then */
    bool refused;            /* the server answered 401 to the present one */
    int failures, refusals;  /* in a row */
    struct err failure;      /* of the last run; ERR_NONE: it worked */
};

struct auth *auth_new(struct kube_loop *l, struct kube_config *config, void (*changed)(void *ctx), void *ctx)
{
    struct auth *a = memory_must(calloc(1, sizeof(*a)));

    *a = (struct auth){.loop = l, .config = config, .changed = changed, .ctx = ctx};
    return a;
}

void auth_free(struct auth *a)
{
    if (!a)
        return;
    subprocess_free(a->child);
    free(a);
}

uint64_t auth_serial(const struct auth *a)
{
    return a->serial;
}

static int64_t wall_ms(const struct auth *a)
{
    struct clock c = kube_loop_clock(a->loop);

    return c.wall_ms(c.ctx);
}

static void wait_before_next(struct auth *a, int times)
{
    a->not_before_ms =
        kube_loop_now_ms(a->loop) + backoff_delay_ms(BACKOFF_MS, AUTH_BACKOFF_MAX_MS, times - 1);
}

static void failed(struct auth *a, const struct err *err)
{
    a->failure = *err;
    a->failure.kind = ERR_TRANSIENT;
    wait_before_next(a, ++a->failures);
}

/* --- one run ------------------------------------------------------------------------------------------- */

/* The variable replaces one of the same name. */
static void put_env(const char **env, size_t *n, const char *line)
{
    size_t name = strcspn(line, "=") + 1;
    size_t i = 0;

    while (i < *n && strncmp(env[i], line, name) != 0)
        i++;
    env[i] = line;
    *n += i == *n;
}

static const char *const *make_env(const struct exec_spec *spec, const char *info, struct arena *a)
{
    size_t n = 0;
    size_t ours = 0;

    while (environ[ours])
        ours++;
    const char **env = arena_array(a, ours + EXEC_ENV_MAX + 2, const char *);
    for (size_t i = 0; i < ours; i++)
        env[n++] = environ[i];
    for (size_t i = 0; spec->env[i]; i++)
        put_env(env, &n, spec->env[i]);
    put_env(env, &n, arena_printf(a, "KUBERNETES_EXEC_INFO=%s", info));
    return env;
}

static int make_info(const struct kube_config *c, struct buf *info, struct err *err)
{
    struct exec_cluster cluster = {.server = c->server,
                                   .tls_server_name = c->tls_server_name,
                                   .proxy_url = c->proxy_url,
                                   .config = c->exec_config,
                                   .ca = {c->ca.bytes.data, c->ca.bytes.len},
                                   .insecure = c->insecure,
                                   .disable_compression = c->disable_compression};

    return exec_info(c->exec.api_version, c->exec.provide_cluster_info ? &cluster : NULL, info, err);
}

static int take(struct kube_secret *s, const char *text, struct err *err)
{
    return text ? kube_secret_from_text(s, text, err) : 0;
}

/* All of it or nothing. */
static int use(struct auth *a, const struct exec_credential *given, struct err *err)
{
    struct kube_secret token = {0};
    struct kube_secret cert = {0};
    struct kube_secret key = {0};

    if (take(&token, given->token, err) < 0 || take(&cert, given->cert, err) < 0 ||
        take(&key, given->key, err) < 0) {
        kube_secret_release(&token);
        kube_secret_release(&cert);
        kube_secret_release(&key);
        return -1;
    }
    kube_secret_release(&a->config->token);
    kube_secret_release(&a->config->client_cert);
    kube_secret_release(&a->config->client_key);
    a->config->token = token;
    a->config->client_cert = cert;
    a->config->client_key = key;
    return 0;
}

static void plan_next(struct auth *a, int64_t expires_ms)
{
    int64_t now = wall_ms(a);
    int64_t left = expires_ms > now ? expires_ms - now : 0;

    a->serial++;
    a->refused = false;
    a->failures = 0;
    a->failure.kind = ERR_NONE;
    a->least_ms = kube_loop_now_ms(a->loop) + SHORTEST_LIFE_MS;
    a->expires_wall_ms = expires_ms;
    a->early_wall_ms = expires_ms == INT64_MAX
                           ? INT64_MAX
                           : expires_ms - (left / 5 < AUTH_EARLY_MS ? left / 5 : AUTH_EARLY_MS);
}

static int read_answer(struct auth *a, struct sv text, struct err *err)
{
    struct exec_credential given;
    cJSON *tree = NULL;

    if (exec_credential_decode(text, a->config->exec.api_version, &tree, &given, err) < 0)
        return -1;
    int rc = use(a, &given, err);
    exec_tree_free(tree);
    if (rc == 0)
        plan_next(a, given.expires_ms);
    return rc;
}

static int judge(struct auth *a, struct subprocess *c, struct err *err)
{
    char tail[SUBPROCESS_TAIL_BYTES + 1];
    int code = 0;

    subprocess_tail(c, tail);
    const char *colon = *tail ? ": " : "";
    switch (subprocess_end(c, &code)) {
    case SUBPROCESS_EXITED:
        if (code == 0)
            return read_answer(a, subprocess_output(c), err);
        return err_set(err, ERR_TRANSIENT, "ended with exit code %d%s%s", code, colon, tail);
    case SUBPROCESS_KILLED:
        return err_set(err, ERR_TRANSIENT, "ended by signal %d%s%s", code, colon, tail);
    case SUBPROCESS_TOO_LATE:
        return err_set(err, ERR_TRANSIENT, "not done after %d s, killed%s%s", AUTH_RUN_MAX_MS / 1000, colon,
                       tail);
    case SUBPROCESS_TOO_MUCH:
        return err_set(err, ERR_TRANSIENT, "wrote more than %d bytes, killed", AUTH_OUTPUT_MAX_BYTES);
    case SUBPROCESS_LOST:
        return err_set(err, ERR_TRANSIENT, "how it ended is not known: SIGCHLD is ignored in this process");
    }
    return err_set(err, ERR_FATAL, "subprocess_end");
}

static void on_done(void *ctx, struct subprocess *c)
{
    struct auth *a = ctx;
    struct err err;

    a->child = NULL;
    if (judge(a, c, &err) < 0) {
        err_wrap(&err, "credential plugin %.80s", a->config->exec.argv[0]);
        failed(a, &err);
    }
    subprocess_free(c);
    a->changed(a->ctx);
}

static int run(struct auth *a, struct err *err)
{
    const struct exec_spec *spec = &a->config->exec;
    cleanup_buf struct buf info = BUF_INIT(EXEC_INFO_MAX_BYTES);
    cleanup_arena struct arena arena = {0};

    if (make_info(a->config, &info, err) < 0)
        return err_wrap(err, "credential plugin %.80s", spec->argv[0]);
    a->child = subprocess_start(a->loop,
                                &(struct subprocess_spec){.argv = spec->argv,
                                                          .env = make_env(spec, buf_str(&info), &arena),
                                                          .output_max_bytes = AUTH_OUTPUT_MAX_BYTES,
                                                          .deadline_ms = AUTH_RUN_MAX_MS,
                                                          .done = on_done,
                                                          .ctx = a},
                                err);
    if (a->child)
        return 0;
    err_wrap(err, "credential plugin");
    if (err->kind != ERR_NOT_FOUND || !*spec->install_hint)
        return -1;
    struct err cause = *err;
    return err_set(err, cause.kind, "%.120s; %s", cause.msg, spec->install_hint);
}

/* --- when ---------------------------------------------------------------------------------------------- */

enum auth_state auth_ask(struct auth *a, struct err *err)
{
    int64_t now = kube_loop_now_ms(a->loop);
    struct err why;

    kube_config_refresh(a->config, now, false); /* beside a plugin, too: the certificate authority */
    if (!a->config->exec.argv)
        return AUTH_READY;
    int64_t wall = wall_ms(a);
    bool alive = a->serial && (wall < a->expires_wall_ms || now < a->least_ms);
    bool wanted = !alive || a->refused || (wall >= a->early_wall_ms && now >= a->least_ms);
    if (wanted && !a->child && now >= a->not_before_ms && run(a, &why) < 0)
        failed(a, &why);
    if (alive && !a->refused)
        return AUTH_READY;
    if (a->child)
        return AUTH_WAIT;
    if (a->failure.kind == ERR_NONE)
        return AUTH_READY; /* too early to ask again: the server's answer is the truth */
    *err = a->failure;
    return AUTH_FAILED;
}

bool auth_renewed(struct auth *a, uint64_t generation)
{
    if (a->config->generation == generation)
        kube_config_refresh(a->config, kube_loop_now_ms(a->loop), true);
    return a->config->generation != generation;
}

void auth_answered(struct auth *a, uint64_t serial, int http_status)
{
    if (!a->serial || serial != a->serial)
        return;
    if (http_status != 401 && http_status >= 200 && http_status < 500 && http_status != 429) {
        a->refusals = 0;
        a->refused = false;
    } else if (http_status == 401 && !a->refused) {
        a->refused = true;
        if (a->refusals++)
            wait_before_next(a, a->refusals - 1);
    }
}
