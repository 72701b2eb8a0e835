/* open.c - read and check the configuration, choose a transport and open it; map errors to exit codes. */
#include "collectives/pods.h"
#include "collectives/watch_server.h"
#include "common/clock.h"
#include "common/contract.h"
#include "common/memory.h"
#include "common/sv.h"
#include "host/memory_file.h"
#include "host/rank_contract.h"
#include "host/rank_state.h"
#include "rendezvous/net.h"

#include <stdlib.h>
#include <string.h>

enum { RETRY_MS = 50, PORT_MS = 10000 };

/* A missing variable leaves *ret. */
static int read_int(char *(*get)(const char *), const char *name, int min, int max, int *ret, struct err *err)
{
    const char *text = get(name);
    int64_t value;

    if (!text || !*text)
        return 0;
    if (!sv_i64(sv_from(text), min, max, &value))
        return err_set(err, ERR_INVALID, "%s=%.40s: expected a whole number %d..%d", name, text, min, max);
    *ret = (int)value;
    return 0;
}

static bool is_loopback(const char *addr)
{
    return !addr || strncmp(addr, "127.", 4) == 0 || strcmp(addr, "localhost") == 0 ||
           strcmp(addr, "::1") == 0;
}

/* Check that values, each of which is in its range, fit each other. */
static int check(const struct collectives_config *cfg, struct err *err)
{
    if (cfg->rank >= cfg->world)
        return err_set(err, ERR_INVALID, "RANK=%d: expected 0..%d, below WORLD_SIZE", cfg->rank,
                       cfg->world - 1);
    if (cfg->local_world > cfg->world)
        return err_set(err, ERR_INVALID, "LOCAL_WORLD_SIZE=%d: expected 1..%d, at most WORLD_SIZE",
                       cfg->local_world, cfg->world);
    if (cfg->local_world > COLLECTIVES_HOST_RANKS_MAX)
        return err_set(err, ERR_INVALID, "LOCAL_WORLD_SIZE=%d: expected at most %d ranks per host",
                       cfg->local_world, COLLECTIVES_HOST_RANKS_MAX);
    if (cfg->local_rank >= cfg->local_world)
        return err_set(err, ERR_INVALID, "LOCAL_RANK=%d: expected 0..%d, below LOCAL_WORLD_SIZE",
                       cfg->local_rank, cfg->local_world - 1);
    if (cfg->local_rank > cfg->rank)
        return err_set(err, ERR_INVALID, "LOCAL_RANK=%d: expected 0..%d, at most RANK", cfg->local_rank,
                       cfg->rank);
    if (cfg->run_id && strlen(cfg->run_id) >= PASS_RUN_ID_BYTES)
        return err_set(err, ERR_INVALID, "%s: longer than %d bytes", CONTRACT_ENV_RUN_ID,
                       PASS_RUN_ID_BYTES - 1);
    return 0;
}

int collectives_config_read(struct collectives_config *cfg, char *(*get)(const char *name), struct err *err)
{
    struct collectives_config c = {.world = 1, .master_port = CONTRACT_MASTER_PORT};
    const char *rank = get(CONTRACT_ENV_RANK), *world = get(CONTRACT_ENV_WORLD_SIZE);
    const int most = COLLECTIVES_RANKS_MAX;

    if ((rank && *rank) != (world && *world))
        return err_set(err, ERR_INVALID, "%s is set and %s is not: expected both, or none for one process",
                       rank && *rank ? "RANK" : "WORLD_SIZE", rank && *rank ? "WORLD_SIZE" : "RANK");
    c.master_addr = get(CONTRACT_ENV_MASTER_ADDR);
    c.run_id = get(CONTRACT_ENV_RUN_ID);
    c.key_file = get(CONTRACT_ENV_KEY_FILE);
    if (read_int(get, CONTRACT_ENV_RANK, 0, most - 1, &c.rank, err) < 0 ||
        read_int(get, CONTRACT_ENV_WORLD_SIZE, 1, most, &c.world, err) < 0)
        return -1;
    /* Started by hand with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT only: a loopback address means one
     * host, any other address one host per rank. */
    c.local_world = is_loopback(c.master_addr) ? c.world : 1;
    c.local_rank = c.local_world == 1 ? 0 : c.rank;
    c.group_rank = c.local_world == 1 ? c.rank : 0;
    if (read_int(get, CONTRACT_ENV_LOCAL_WORLD_SIZE, 1, most, &c.local_world, err) < 0 ||
        read_int(get, CONTRACT_ENV_LOCAL_RANK, 0, most - 1, &c.local_rank, err) < 0 ||
        read_int(get, "GROUP_RANK", 0, most - 1, &c.group_rank, err) < 0 ||
        read_int(get, CONTRACT_ENV_RESTART_COUNT, 0, 1 << 30, &c.restart_count, err) < 0 ||
        read_int(get, CONTRACT_ENV_MASTER_PORT, 1, 65535, &c.master_port, err) < 0 || check(&c, err) < 0)
        return -1;
    const char *agent = get("TORCHELASTIC_USE_AGENT_STORE");
    if (agent && strcmp(agent, "True") == 0) /* PyTorch's launcher listens there */
        c.master_port += c.master_port < 65535 ? 1 : -1;
    *cfg = c;
    return 0;
}

/* Whether the ranks are in several pods, or cannot share memory in one. */
static bool needs_pods(const struct collectives_config *cfg)
{
    return cfg->world > 1 && (cfg->local_world < cfg->world || !host_can_share());
}

/* Read the job's key from the launcher's memory file, only if this rank needs it: ranks that run as another
 * user than the launcher, or in another PID namespace, cannot open the file. */
static int read_key(struct collectives_config *cfg, struct err *err)
{
    const char *file = cfg->key_file;

    if (!file || !*file)
        return 0;
    cleanup_close int fd = memory_file_open(CONTRACT_KEY_FILE_NAME, sv_from(file));
    if (fd < 0 || pread(fd, cfg->key.bytes, sizeof(cfg->key.bytes), 0) != (ssize_t)sizeof(cfg->key.bytes))
        return err_set(
            err, ERR_INVALID,
            "%s=%.40s: cannot read the launcher's key of the job, by which ranks of several pods "
            "authenticate each other: run the ranks as the launcher's user and in its PID namespace, or "
            "set " CONTRACT_ENV_JOB_KEY " to \"\" for all launchers",
            CONTRACT_ENV_KEY_FILE, file);
    cfg->key.has = true;
    return 0;
}

static bool needs_watch(const struct collectives_config *cfg, bool pods)
{
    return cfg->rank == 0 && (pods || cfg->awaiting);
}

/* Rank 0's watch, where one is needed. Try again while the port is taken: rank 0 of the previous round may still be
 * exiting. */
static int start_watch(const struct collectives_config *cfg, bool pods, int64_t deadline_ms,
                       struct watch_server **ret, struct err *err)
{
    const int64_t left_ms = host_left_ms(deadline_ms);
    const int64_t end_ms = clock_mono_ms() + (left_ms < PORT_MS ? left_ms : PORT_MS);
    const struct pass pass = pass_of(cfg);

    *ret = NULL;
    if (!needs_watch(cfg, pods))
        return 0;
    for (;;) {
        struct err why = {0};
        *ret = watch_server_start(cfg->master_port, &pass, cfg->restart_count, pods ? cfg->world : 0,
                                  cfg->awaiting, &why);
        if (*ret)
            return 0;
        if (why.kind != ERR_CONFLICT || clock_mono_ms() >= end_ms) {
            *err = why;
            return -1;
        }
        net_wait(-1, 0, RETRY_MS);
    }
}

struct collectives *collectives_open(const struct collectives_config *given, int64_t timeout_ms,
                                     struct err *err)
{
    struct collectives_config run = *given;
    const struct collectives_config *cfg = &run;
    const bool pods = needs_pods(cfg);

    if ((pods || needs_watch(cfg, pods)) && read_key(&run, err) < 0)
        return NULL;
    struct collectives *c = memory_must(calloc(1, sizeof(*c)));
    c->rank = cfg->rank;
    c->world = cfg->world;
    rank_state_begin(cfg->slot, RANK_CALL_OPEN);
    const int64_t deadline_ms = clock_mono_ms() + timeout_ms;
    struct watch_server *watch;
    int rc = start_watch(cfg, pods, deadline_ms, &watch, err);
    if (rc == 0)
        rc = pods_open(c, cfg, pods, watch ? host_left_ms(deadline_ms) : timeout_ms, err);
    rank_state_end(cfg->slot);
    c->slot = cfg->slot; /* the transport has filled in all the rest */
    c->watch = watch;
    if (rc < 0) {
        watch_server_stop(watch);
        free(c);
        return NULL;
    }
    return c;
}

void collectives_close(struct collectives *c)
{
    if (!c)
        return;
    c->close(c);
    watch_server_stop(c->watch);
    free(c);
}

int collectives_await_end(const struct collectives_config *given, int64_t timeout_ms, int *exit_code,
                          struct err *err)
{
    struct collectives_config run = *given;
    const struct collectives_config *cfg = &run;

    if (read_key(&run, err) < 0)
        return -1;
    const struct pass pass = pass_of(cfg);
    const bool far = cfg->rank && cfg->master_addr && *cfg->master_addr;
    const int64_t deadline_ms = clock_mono_ms() + timeout_ms;
    cleanup_resolver struct resolver *at =
        resolver_new(far ? cfg->master_addr : "127.0.0.1", cfg->master_port);

    struct err why = {0};
    const int rc = watch_await_end(at, &pass, cfg->restart_count, deadline_ms, exit_code, &why);

    if (rc > 0)
        return err_set(err, ERR_TIMEOUT, "deadline passed while looking for rank 0: %.200s", why.msg);
    if (rc < 0)
        *err = why;
    return rc;
}

void collectives_end(struct collectives *c, int exit_code, int64_t wait_ms)
{
    if (c->watch)
        watch_server_end(c->watch, exit_code, wait_ms);
}

int collectives_exit_code(const struct err *err)
{
    switch (err->kind) {
    case ERR_NONE:
        return EXIT_CODE_OK;
    case ERR_PEER:
        return EXIT_CODE_PEER_LOST;
    case ERR_TIMEOUT:
    case ERR_TRANSIENT:
    case ERR_CONFLICT:
        return EXIT_CODE_RETRYABLE;
    case ERR_INVALID:
    case ERR_NOT_FOUND:
    case ERR_FATAL:
        break;
    }
    return err_is_shortage(err) ? EXIT_CODE_RETRYABLE : EXIT_CODE_ERROR;
}
