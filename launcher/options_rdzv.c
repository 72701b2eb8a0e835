/* options_rdzv.c - resolve the rendezvous options: backend, endpoint, configuration, node rank. */
#include "common/contract.h"
#include "common/sv.h"
#include "launcher/options_read.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

/* PyTorch's defaults. */
enum { JOIN_S = 600, LAST_CALL_S = 30, KEEP_ALIVE_S = 5, KEEP_ALIVE_ATTEMPTS = 3 };

/* The leader's default port is MASTER_PORT minus this: 29400 for 29500. */
enum { LEADER_PORT_OFFSET = CONTRACT_MASTER_PORT - CONTRACT_RDZV_PORT };

/* A value that cannot be used. Of a setting that PyTorch's backend of that name does not read ("timeout" with c10d, the
 * others with static) it works in PyTorch's launcher. */
static int bad_setting(const struct option_values *v, struct sv key, struct arena *a, struct options *o,
                       const char *expected, struct err *err)
{
    const bool reads = (o->is_static && !o->standalone) == sv_eq(key, "timeout");

    if (reads)
        return option_bad(v, OPT_RDZV_CONF, err, expected);
    option_warn(o, a, "--rdzv-conf: %.*s has no effect: expected %s", (int)key.len, key.p, expected);
    return 0;
}

static bool is_one_of(struct sv word, const char *const *list)
{
    while (*list && !sv_eq(word, *list))
        list++;
    return *list;
}

/* Read one key=value of --rdzv-conf; the last value of a key counts, as in torchrun. Keys with a NULL member
 * below, and `others`, configure PyTorch's store or its other backends: accepted without effect. */
static int read_setting(const struct option_values *v, struct sv key, struct sv value, struct arena *a,
                        struct options *o, int64_t *static_join_ms, struct err *err)
{
    struct meet_config *m = &o->meeting;
    struct {
        const char *name;
        int64_t *seconds;
    } const times[] = {{"join_timeout", &m->node.join_ms},
                       {"timeout", static_join_ms},
                       {"last_call_timeout", &m->quorum.last_call_ms},
                       {"keep_alive_interval", &m->node.keep_alive_ms},
                       {"read_timeout", NULL},
                       {"close_timeout", NULL},
                       {"heartbeat_timeout", NULL}};
    static const char *const others[] = {"rank", "store_type", "use_libuv", NULL},
                             *const yes[] = {"true", "True", "1", "yes", "t", "y", NULL},
                             *const no[] = {"false", "False", "0", "no", "f", "n", NULL};
    double s;
    int64_t n;

    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        if (sv_eq(key, times[i].name)) {
            if (!sv_f64(value, &s) || !(s > 0 && s <= 86400 * 7))
                return bad_setting(v, key, a, o, "times in seconds, above 0", err);
            if (times[i].seconds)
                *times[i].seconds = s < 0.001 ? 1 : (int64_t)(s * 1000);
            return 0;
        }
    if (sv_eq(key, "is_host")) {
        m->hosts = is_one_of(value, yes) ? MEET_HOSTS : MEET_HOSTS_NOT;
        return m->hosts == MEET_HOSTS || is_one_of(value, no)
                   ? 0
                   : bad_setting(v, key, a, o, "is_host=true or is_host=false", err);
    }
    if (sv_eq(key, "keep_alive_max_attempt")) {
        if (!sv_i64(value, 1, 1000, &n))
            return bad_setting(v, key, a, o, "keep_alive_max_attempt=1..1000", err);
        m->node.keep_alive_attempts = n;
        return 0;
    }
    if (!is_one_of(key, others))
        option_warn(o, a, "--rdzv-conf: %.*s is not a setting of this launcher and has no effect",
                    key.len < 40 ? (int)key.len : 40, key.p);
    return 0;
}

static int get_conf(const struct option_values *v, struct arena *a, struct options *o, struct err *err)
{
    struct meet_config *m = &o->meeting;
    struct sv rest = sv_trim(sv_from(v->text[OPT_RDZV_CONF] ? v->text[OPT_RDZV_CONF] : "")), pair;
    int64_t static_join_ms = 0;

    m->node.join_ms = JOIN_S * 1000;
    m->quorum.last_call_ms = LAST_CALL_S * 1000;
    m->node.keep_alive_ms = KEEP_ALIVE_S * 1000;
    m->node.keep_alive_attempts = KEEP_ALIVE_ATTEMPTS;
    while (rest.len && sv_next(&rest, ',', &pair)) {
        struct sv key, value = pair;
        if (!memchr(pair.p, '=', pair.len))
            return option_bad(v, OPT_RDZV_CONF, err, "key=value pairs with commas between them");
        sv_next(&value, '=', &key);
        if (read_setting(v, sv_trim(key), sv_trim(value), a, o, &static_join_ms, err) < 0)
            return -1;
    }
    if (o->is_static && static_join_ms)
        m->node.join_ms = static_join_ms;
    return 0;
}

/* With its zone: fe80::1%eth0. */
static bool is_ipv6(struct sv text)
{
    char address[INET6_ADDRSTRLEN] = "";
    struct in6_addr ignored;
    struct sv plain;

    return sv_next(&text, '%', &plain) && plain.len < sizeof(address) &&
           inet_pton(AF_INET6, memcpy(address, plain.p, plain.len), &ignored) == 1;
}

/* A host or an address without a port; brackets are taken off. *ret is NULL where none is given. */
static int get_address(const struct option_values *v, int id, struct arena *a, const char **ret,
                       struct err *err)
{
    struct sv text = sv_from(v->text[id] ? v->text[id] : "");
    const bool boxed = text.len > 1 && text.p[0] == '[' && text.p[text.len - 1] == ']';

    if (boxed)
        text = (struct sv){text.p + 1, text.len - 2};
    if ((boxed || (text.len && memchr(text.p, ':', text.len))) && !is_ipv6(text))
        return option_bad(v, id, err, "a host or an address without a port, as job-0, 10.0.0.1 or fd00::1");
    *ret = text.len ? arena_strndup(a, text.p, text.len) : NULL;
    return 0;
}

/* host, host:port, [v6] or [v6]:port. */
static int split_endpoint(const struct option_values *v, struct arena *a, const char **host, int *port,
                          struct err *err)
{
    const char *text = v->text[OPT_RDZV_ENDPOINT];
    const char *bracket = text[0] == '[' ? strchr(text, ']') : NULL;
    const char *colon = strchr(bracket ? bracket : text, ':');
    const struct sv name =
        bracket ? (struct sv){text + 1, (size_t)(bracket - text) - 1} : (struct sv){text, strcspn(text, ":")};
    int64_t n;

    if (!name.len ||
        (bracket ? !is_ipv6(name) || bracket + 1 != (colon ? colon : strchr(text, '\0')) : text[0] == '[') ||
        (colon && !sv_i64(sv_from(colon + 1), 0, 65535, &n)))
        return option_bad(v, OPT_RDZV_ENDPOINT, err,
                          "HOST or HOST:PORT, with an IPv6 address in brackets, as [fd00::1]:29400");
    *host = arena_strndup(a, name.p, name.len);
    if (colon)
        *port = (int)n;
    return 0;
}

/* Backend static: nodes have fixed ranks, and node 0 is at the master's address. */
static int get_static(const struct option_values *v, const char *host, int port, struct options *o,
                      struct err *err)
{
    struct meet_config *m = &o->meeting;

    o->master_addr = o->master_addr ? o->master_addr : host ? host : "127.0.0.1";
    o->master_port = port ? port : CONTRACT_MASTER_PORT;
    if (option_int(v, OPT_MASTER_PORT, &o->master_port, err) < 0)
        return -1;
    m->host = host ? host : o->master_addr;
    m->port = port;
    if (!port || port == o->master_port)
        m->port = o->master_port > LEADER_PORT_OFFSET ? o->master_port - LEADER_PORT_OFFSET
                                                      : o->master_port + LEADER_PORT_OFFSET;
    m->hosts = o->node_rank == 0 ? MEET_HOSTS : MEET_HOSTS_NOT;
    return 0;
}

/* Backend c10d: node ranks are assigned in each round, and node 0 of the round provides the master's address. */
static int get_dynamic(const struct option_values *v, const char *host, int port, struct options *o,
                       struct err *err)
{
    struct meet_config *m = &o->meeting;

    o->master_addr = o->nnodes > 1 ? o->master_addr : m->node.addr ? m->node.addr : "127.0.0.1";
    o->master_port = 0;
    if (o->nnodes == 1)
        return 0;
    if (!host)
        return err_set(err, ERR_INVALID,
                       "--rdzv-endpoint: expected HOST[:PORT], where several nodes meet with c10d");
    m->host = host;
    m->port = port ? port : CONTRACT_RDZV_PORT;
    if (option_int(v, OPT_MASTER_PORT, &o->master_port, err) < 0)
        return -1;
    if (o->master_port == m->port)
        return option_bad(v, OPT_MASTER_PORT, err, "another port than --rdzv-endpoint's");
    return 0;
}

static int get_master(const struct option_values *v, struct arena *a, struct options *o, struct err *err)
{
    const char *host = NULL;
    int port = 0;

    if (get_address(v, OPT_LOCAL_ADDR, a, &o->meeting.node.addr, err) < 0 ||
        get_address(v, OPT_MASTER_ADDR, a, &o->master_addr, err) < 0 || get_conf(v, a, o, err) < 0 ||
        (v->text[OPT_RDZV_ENDPOINT] && split_endpoint(v, a, &host, &port, err) < 0))
        return -1;
    if (o->nnodes > MEETING_NODES_MAX)
        return option_bad(v, OPT_NNODES, err, "at most 2000 nodes");
    return o->is_static && !o->standalone ? get_static(v, host, port, o, err)
                                          : get_dynamic(v, host, port, o, err);
}

static bool is_loopback(const char *host)
{
    static const char *const names[] = {"localhost", "localhost.localdomain", "ip6-localhost", "::1"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcasecmp(host, names[i]) == 0)
            return true;
    return strncmp(host, "127.", 4) == 0 || strncasecmp(host, "::ffff:127.", 11) == 0;
}

/* Several nodes need an id of their own, since every run without one has PyTorch's "none": the job's, or a key. */
static int get_run_id(const struct option_values *v, const struct options_host *host, struct options *o,
                      struct err *err)
{
    const char *given = v->text[OPT_RDZV_ID], *uid = host->get(CONTRACT_ENV_JOB_UID);
    const bool needed = o->nnodes > 1 && (!given || strcmp(given, "none") == 0);

    o->run_id = given ? given : o->standalone ? NULL : needed && uid && *uid ? uid : "none";
    if (o->run_id && strlen(o->run_id) >= 256)
        return err_set(err, ERR_INVALID, "--rdzv-id: expected at most 255 bytes");
    if (needed && o->run_id != uid && !o->meeting.node.key.has && !is_loopback(o->meeting.host))
        return err_set(err, ERR_INVALID,
                       "--rdzv-id: expected an id of this run, the same on all %d nodes and hard to guess "
                       "(--rdzv-id=\"$(uuidgen)\"): whoever reaches %.60s and knows it can take part",
                       o->nnodes, o->meeting.host);
    return 0;
}

int options_rendezvous(const struct option_values *v, const struct options_host *host, struct arena *a,
                       struct options *o, struct err *err)
{
    const bool standalone = v->text[OPT_STANDALONE]; /* with c10d, whatever --rdzv-backend is */
    const char *backend = v->text[OPT_RDZV_BACKEND];
    int c10d = 0;

    if (!standalone && backend && strncmp(backend, "etcd", 4) == 0)
        return option_bad(v, OPT_RDZV_BACKEND, err,
                          "static or c10d: launchers meet by themselves here, without an etcd server");
    if (!standalone && option_read(v, OPT_RDZV_BACKEND, &c10d, err) < 0)
        return -1;
    o->is_static = !standalone && !c10d;
    /* As PyTorch's: a node alone meets nobody, so two launches on a host take no port from each other. */
    const bool alone =
        o->is_static && o->nnodes == 1 && !v->text[OPT_RDZV_ENDPOINT] && !v->text[OPT_MASTER_PORT];
    o->standalone = standalone || alone;
    if (jobkey_read(host->get(CONTRACT_ENV_JOB_KEY), &o->meeting.node.key, err) < 0)
        return err_wrap(err, CONTRACT_ENV_JOB_KEY);
    if (o->standalone && o->nnodes_min != 1)
        return err_set(err, ERR_INVALID, "--standalone: expected --nnodes=1, got %d", o->nnodes_min);
    if (o->standalone)
        o->nnodes = 1; /* of 1:4: nobody can join at a port that nobody knows */
    if (o->is_static && !o->standalone && o->nnodes_min != o->nnodes)
        return option_bad(v, OPT_NNODES, err, "one number: elastic runs (MIN:MAX) need --rdzv-backend=c10d");
    if (option_int(v, OPT_NODE_RANK, &o->node_rank, err) < 0)
        return -1;
    if (o->node_rank && o->standalone)
        option_warn(o, a, "--node-rank=%d has no effect: there is one node", o->node_rank);
    if (!o->is_static || o->standalone)
        o->node_rank = 0;
    if (o->node_rank >= o->nnodes)
        return err_set(err, ERR_INVALID, "--node-rank=%d: expected 0..%d, below --nnodes", o->node_rank,
                       o->nnodes - 1);
    return get_master(v, a, o, err) < 0 ? -1 : get_run_id(v, host, o, err);
}
