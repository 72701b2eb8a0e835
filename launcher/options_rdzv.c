/* options_rdzv.c - how the nodes of a run find each other, as far as one node has to know. */
#include "common/contract.h"
#include "common/sv.h"
#include "launcher/options_read.h"

#include <stdio.h>
#include <string.h>

static int check_conf(const struct option_values *v, struct err *err)
{
    static const char *const known[] = {
        "is_host",           "read_timeout",  "join_timeout",           "timeout",
        "last_call_timeout", "close_timeout", "keep_alive_interval",    "rank",
        "store_type",        "use_libuv",     "keep_alive_max_attempt", "heartbeat_timeout"};
    struct sv rest = sv_from(v->text[OPT_RDZV_CONF] ? v->text[OPT_RDZV_CONF] : ""), pair;

    while (rest.len && sv_next(&rest, ',', &pair)) {
        struct sv key, value = pair;
        bool found = false;
        if (!memchr(pair.p, '=', pair.len))
            return option_bad(v, OPT_RDZV_CONF, err, "key=value pairs with commas between them");
        sv_next(&value, '=', &key);
        key = sv_trim(key);
        for (size_t i = 0; i < ARRAY_LEN(known); i++)
            found = found || sv_eq(key, known[i]);
        if (!found)
            return err_set(
                err, ERR_INVALID,
                "--rdzv-conf: unknown setting \"%.*s\": expected is_host, join_timeout, read_timeout, "
                "timeout, last_call_timeout, close_timeout, keep_alive_interval, ... (see --help)",
                (int)(key.len < 40 ? key.len : 40), key.p);
    }
    return 0;
}

/* host, host:port, [v6] or [v6]:port. */
static int split_endpoint(const struct option_values *v, struct arena *a, const char **host, int *port,
                          struct err *err)
{
    const char *text = v->text[OPT_RDZV_ENDPOINT];
    const char *colon = text[0] == '[' ? strstr(text, "]:") : strrchr(text, ':');
    int64_t n;

    if (colon && text[0] == '[')
        colon++;
    size_t len = colon ? (size_t)(colon - text) : strlen(text);
    if (len == 0 || (colon && !sv_i64(sv_from(colon + 1), 0, 65535, &n)))
        return option_bad(v, OPT_RDZV_ENDPOINT, err, "HOST or HOST:PORT");
    if (text[0] == '[' && len > 2)
        *host = arena_strndup(a, text + 1, len - 2);
    else
        *host = arena_strndup(a, text, len);
    if (colon)
        *port = (int)n;
    return 0;
}

static int get_master(const struct option_values *v, struct arena *a, bool is_static, struct options *o,
                      struct err *err)
{
    const char *host = NULL;
    int port = CONTRACT_MASTER_PORT;

    if (v->text[OPT_RDZV_ENDPOINT] && split_endpoint(v, a, &host, &port, err) < 0)
        return -1;
    if (!is_static || o->standalone) {
        o->master_addr = v->text[OPT_LOCAL_ADDR] ? v->text[OPT_LOCAL_ADDR] : "127.0.0.1";
        o->master_port = 0;
        return 0;
    }
    o->master_addr = v->text[OPT_MASTER_ADDR] ? v->text[OPT_MASTER_ADDR] : host ? host : "127.0.0.1";
    o->master_port = port;
    return option_int(v, OPT_MASTER_PORT, 1, 65535, &o->master_port, err);
}

int options_rendezvous(const struct option_values *v, struct arena *a, struct options *o, struct err *err)
{
    const char *backend = v->text[OPT_RDZV_BACKEND] ? v->text[OPT_RDZV_BACKEND] : "static";
    const bool is_static = strcmp(backend, "static") == 0;

    o->standalone = v->text[OPT_STANDALONE] != NULL;
    o->run_id = v->text[OPT_RDZV_ID] ? v->text[OPT_RDZV_ID] : o->standalone ? NULL : "none";
    if (strncmp(backend, "etcd", 4) == 0)
        return option_bad(v, OPT_RDZV_BACKEND, err, "static or c10d: etcd is not supported");
    if (!is_static && strcmp(backend, "c10d") != 0)
        return option_bad(v, OPT_RDZV_BACKEND, err, "static or c10d");
    if (o->standalone && o->nnodes != 1)
        return err_set(err, ERR_INVALID, "--standalone: expected --nnodes=1, got %d", o->nnodes);
    if (o->nnodes > 1 && !is_static)
        return err_set(
            err, ERR_INVALID,
            "--nnodes=%d --rdzv-backend=c10d: several nodes need --rdzv-backend=static with --node-rank "
            "and --master-addr in this version",
            o->nnodes);
    if (check_conf(v, err) < 0 || option_int(v, OPT_NODE_RANK, 0, OPTIONS_WORLD_MAX, &o->node_rank, err) < 0)
        return -1;
    if (o->nnodes == 1 && !is_static)
        o->node_rank = 0;
    if (o->node_rank >= o->nnodes)
        return err_set(err, ERR_INVALID, "--node-rank=%d: expected 0..%d, below --nnodes", o->node_rank,
                       o->nnodes - 1);
    if (strlen(o->run_id ? o->run_id : "") >= 256)
        return err_set(err, ERR_INVALID, "--rdzv-id: expected at most 255 bytes");
    return get_master(v, a, is_static, o, err);
}
