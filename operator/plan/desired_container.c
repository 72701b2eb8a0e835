/* desired_container.c - build the training container: torchrun's command line, or plain environment variables. */
#include "operator/plan/desired.h"

#include "common/contract.h"
#include "operator/plan/guards.h"

#include <string.h>

/* With such an endpoint c10d does not choose the host itself, and its default timeout is 60 s, shorter than
 * an image pull of pod 0. */
enum { READ_TIMEOUT_S = 600, JOIN_TIMEOUT_S = 3600 };

static char *master_address(struct planner *p)
{
    return arena_printf(p->a, "%s.%s", p->slots[0].name, desired_service_name(p->a, p->job->name));
}

static void add_arg(cJSON *args, const char *arg)
{
    cJSON_AddItemToArray(args, cJSON_CreateString(arg));
}

/* If extra option `i` is --rdzv_conf, in either spelling: its value; moves `i` to its last word. Else NULL. */
static const char *users_rdzv_conf(const struct torchrun_config *t, int *i)
{
    const char *option = t->extra_options[*i];
    size_t len = strlen("--rdzv_conf");

    if (strncmp(option, "--rdzv_conf", len) != 0 && strncmp(option, "--rdzv-conf", len) != 0)
        return NULL;
    if (option[len] == '=')
        return option + len + 1;
    if (option[len] == '\0' && *i + 1 < t->n_extra_options)
        return t->extra_options[++*i];
    return NULL;
}

/* torchrun uses only the last --rdzv_conf, and in it the last value of a key. So pass one option with the
 * user's values after ours: a user who sets a timeout keeps is_host. */
static void add_rdzv_conf(struct planner *p, const struct slot *s, cJSON *args)
{
    const struct torchrun_config *t = &p->spec->torchrun;
    const char *users = NULL;
    const char *ours = arena_printf(p->a, "--rdzv_conf=is_host=%s,read_timeout=%d,join_timeout=%d",
                                    s->order == 0 ? "true" : "false", READ_TIMEOUT_S, JOIN_TIMEOUT_S);

    for (int i = 0; i < t->n_extra_options; i++) {
        const char *value = users_rdzv_conf(t, &i);
        users = value ? value : users;
    }
    add_arg(args, users && users[0] ? arena_printf(p->a, "%s,%s", ours, users) : ours);
}

static void add_rendezvous(struct planner *p, const struct slot *s, cJSON *args)
{
    static const char *const BACKENDS[] = {"c10d", "static", "etcd", "etcd-v2"};
    const struct torchrun_config *t = &p->spec->torchrun;

    add_arg(args, arena_printf(p->a, "--rdzv_backend=%s", BACKENDS[t->rdzv_backend]));
    if (t->rdzv_backend == RDZV_C10D || t->rdzv_backend == RDZV_STATIC)
        add_arg(args, arena_printf(p->a, "--rdzv_endpoint=%s:%d", master_address(p), CONTRACT_RDZV_PORT));
    add_arg(args, arena_printf(p->a, "--rdzv_id=%s-%d", p->job->uid, p->st.attempt));
    if (t->rdzv_backend == RDZV_C10D)
        add_rdzv_conf(p, s, args);
    if (t->rdzv_backend == RDZV_STATIC) {
        add_arg(args, arena_printf(p->a, "--node_rank=%d", s->order));
        add_arg(args, arena_printf(p->a, "--master_addr=%s", master_address(p)));
        add_arg(args, arena_printf(p->a, "--master_port=%d", CONTRACT_MASTER_PORT));
    }
}

static void set_torchrun(struct planner *p, const struct slot *s, cJSON *container)
{
    const struct torchrun_config *t = &p->spec->torchrun;
    cJSON *command = cJSON_CreateArray();
    cJSON *args = cJSON_CreateArray();
    const cJSON *arg;

    add_arg(command, desired_launcher_runs(p) ? TRAINJOB_LAUNCHER_PROGRAM : "torchrun");
    if (p->spec->elastic.enabled)
        add_arg(args, arena_printf(p->a, "--nnodes=%d:%d", p->spec->elastic.min, p->spec->elastic.max));
    else if (t->min_nodes > 0 && t->min_nodes < p->spec->pods)
        add_arg(args, arena_printf(p->a, "--nnodes=%d:%d", t->min_nodes, p->spec->pods));
    else
        add_arg(args, arena_printf(p->a, "--nnodes=%d", p->spec->pods));
    add_arg(args, arena_printf(p->a, "--nproc_per_node=%s", t->proc_per_node));
    add_arg(args, arena_printf(p->a, "--max_restarts=%d", t->max_restarts));
    add_rendezvous(p, s, args);
    for (int i = 0; i < t->n_extra_options; i++)
        if (t->rdzv_backend != RDZV_C10D || !users_rdzv_conf(t, &i))
            add_arg(args, t->extra_options[i]);
    cJSON_ArrayForEach(arg, json_child(container, "args"))
        cJSON_AddItemToArray(args, cJSON_Duplicate(arg, true));
    json_set(container, "command", command);
    json_set(container, "args", args);
}

struct env {
    cJSON *ours;
    const cJSON *container; /* the container, with the user's env */
};

/* A new item of this name; NULL: the user has set it. */
static cJSON *env_item(struct env *e, const char *name)
{
    if (pod_has_env(e->container, name))
        return NULL;
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "name", name);
    cJSON_AddItemToArray(e->ours, item);
    return item;
}

static void add_env(struct env *e, const char *name, const char *value)
{
    cJSON *item = env_item(e, name);

    if (item)
        cJSON_AddStringToObject(item, "value", value);
}

/* Not optional: a kubelet that does not see the Secret yet would start this pod without the key that its
 * peers have. */
static void add_key(struct planner *p, struct env *e)
{
    cJSON *item = guards_key(p) ? env_item(e, CONTRACT_ENV_JOB_KEY) : NULL;

    if (!item)
        return;
    cJSON *ref = cJSON_AddObjectToObject(cJSON_AddObjectToObject(item, "valueFrom"), "secretKeyRef");
    cJSON_AddStringToObject(ref, "name", guards_name(p->a, p->job));
    cJSON_AddStringToObject(ref, "key", GUARDS_KEY);
}

static bool on_host_network(const struct slot *s)
{
    return cJSON_IsTrue(json_find(s->spec->template, (const char *[]){"spec", "hostNetwork", NULL}));
}

static void add_plain_env(struct planner *p, const struct slot *s, struct env *e)
{
    const struct torchrun_config *t = &p->spec->torchrun;
    /* Pod 0 uses its short name, which is in its /etc/hosts before DNS has it; with hostNetwork that file is the node's. */
    const char *address = s->order == 0 && !on_host_network(s) ? s->name : master_address(p);
    const char *port = arena_printf(p->a, "%d", CONTRACT_MASTER_PORT);
    const char *nodes = arena_printf(p->a, "%d", p->spec->pods);
    const char *order = arena_printf(p->a, "%d", s->order);

    add_env(e, CONTRACT_ENV_MASTER_ADDR, address);
    add_env(e, CONTRACT_ENV_MASTER_PORT, port);
    add_env(e, CONTRACT_ENV_WORLD_SIZE, nodes);
    add_env(e, CONTRACT_ENV_RANK, order);
    add_env(e, "NODE_RANK", order);
    add_env(e, CONTRACT_ENV_LOCAL_RANK, "0");
    add_env(e, CONTRACT_ENV_ATTEMPT, arena_printf(p->a, "%d", p->st.attempt));
    if (!t->present)
        return;
    add_env(e, "PET_NNODES", nodes);
    add_env(e, "PET_NODE_RANK", order);
    add_env(e, "PET_MASTER_ADDR", address);
    add_env(e, "PET_MASTER_PORT", port);
    add_env(e, "PET_NPROC_PER_NODE", t->proc_per_node);
}

static bool restarts_inside(const struct planner *p)
{
    const struct torchrun_config *t = &p->spec->torchrun;

    return t->enabled && !p->spec->debug.enabled && t->rdzv_backend == RDZV_C10D && t->max_restarts > 0;
}

/* Variables for our launcher; others ignore them. With hostNetwork the progress port would be the node's, so
 * it is not set. */
static void add_launcher_env(struct planner *p, const struct slot *s, struct env *e)
{
    const struct opt_i64 *timeout = &p->spec->run_policy.progress_timeout_s;

    if (s->order == 0 && !on_host_network(s)) {
        add_env(e, CONTRACT_ENV_PROGRESS_PORT, arena_printf(p->a, "%d", CONTRACT_PROGRESS_PORT));
        add_env(e, CONTRACT_ENV_ATTEMPT, arena_printf(p->a, "%d", p->st.attempt));
    }
    if (p->spec->torchrun.rdzv_backend == RDZV_C10D && desired_launcher_runs(p))
        add_env(e, CONTRACT_ENV_NODE_ORDER, arena_printf(p->a, "%d", s->order));
    add_key(p, e);
    if (timeout->set)
        add_env(e, CONTRACT_ENV_PROGRESS_TIMEOUT, arena_printf(p->a, "%lld", (long long)timeout->v));
}

void desired_container(struct planner *p, const struct slot *s, cJSON *container)
{
    struct env e = {cJSON_CreateArray(), container};
    const char *report = json_str(container, "terminationMessagePath");
    /* lastWords: false: neither a report nor the end of the log in the pod's status. */
    const bool silent = p->spec->run_policy.no_last_words;
    const cJSON *v;

    add_env(&e, CONTRACT_ENV_JOB_UID, p->job->uid);
    if (!silent)
        add_env(&e, CONTRACT_ENV_TERMINATION_LOG, report && report[0] ? report : "/dev/termination-log");
    /* A site's ConfigMap may set these by envFrom, which env would override. Our launcher sets them if they are not set. */
    if (cJSON_GetArraySize(json_child(container, "envFrom")) == 0) {
        add_env(&e, "PYTHONUNBUFFERED", "1");
        add_env(&e, "NCCL_DEBUG", "WARN");
    }
    /* Otherwise torch's workers share torchrun's store, and after a restart inside the pods some find values of the round
     * before (torch 2.4 and newer). */
    if (restarts_inside(p))
        add_env(&e, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1");
    if (p->spec->torchrun.enabled && !p->spec->debug.enabled) {
        set_torchrun(p, s, container);
        add_launcher_env(p, s, &e);
    } else {
        add_plain_env(p, s, &e);
    }
    /* Our variables come first, so that the user's may refer to them as $(NAME). */
    cJSON_ArrayForEach(v, json_child(container, "env"))
        cJSON_AddItemToArray(e.ours, cJSON_Duplicate(v, true));
    json_set(container, "env", e.ours);
    if (!silent && !json_str(container, "terminationMessagePolicy"))
        json_set(container, "terminationMessagePolicy", cJSON_CreateString("FallbackToLogsOnError"));
}
