/* trainjob_policy.c - decode spec.torchrunConfig and spec.runPolicy. */
#include "operator/api/trainjob.h"

#include "common/contract.h"
#include "common/sv.h"

#include <string.h>

enum { OPTIONS_MAX = 64, OPTION_BYTES = 4096, MANAGER_BYTES = 253, MANAGER_PATH_BYTES = 63 };

/* torchrun accepts both spellings. */
static bool names_endpoint(const struct torchrun_config *t)
{
    for (int i = 0; i < t->n_extra_options; i++) {
        struct sv o = sv_from(t->extra_options[i]);
        if (sv_starts(o, "--rdzv_endpoint") || sv_starts(o, "--rdzv-endpoint"))
            return true;
    }
    return false;
}

/* An integer of at least 1, as a number or as text, or one of torchrun's keywords. */
static int decode_proc_per_node(const struct json_at *at, struct arena *a, const char **ret, struct err *err)
{
    struct json_at m = json_member(at, "procPerNode");
    int64_t n = 0;

    *ret = "1";
    if (!m.node)
        return 0;
    if (cJSON_IsString(m.node)) {
        const char *s = m.node->valuestring;
        if (strcmp(s, "gpu") == 0 || strcmp(s, "auto") == 0 || strcmp(s, "cpu") == 0) {
            *ret = s;
            return 0;
        }
        if (!sv_i64(sv_from(s), 1, 4096, &n))
            return json_err(&m, err, "expected 1..4096, gpu, auto or cpu, got \"%.40s\"", s);
    } else if (json_get_i64(at, "procPerNode", 1, 4096, &n, err) < 0) {
        return -1;
    }
    *ret = arena_printf(a, "%lld", (long long)n);
    return 0;
}

int trainjob_decode_torchrun(const struct json_at *spec, struct arena *a, struct torchrun_config *ret,
                             struct err *err)
{
    static const char *const KNOWN[] = {"enabled",     "enable",      "maxRestarts",
                                        "procPerNode", "rdzvBackend", "extraOptions",
                                        "minNodes",    "launcher",    NULL};
    static const char *const BACKENDS[] = {"c10d", "static", "etcd", "etcd-v2", NULL};
    struct json_at at = json_member(spec, "torchrunConfig");
    static const char *const LAUNCHERS[] = {"Image", "Torchkeeper", NULL};
    int backend = RDZV_C10D;
    int launcher = LAUNCHER_IMAGE;

    *ret = (struct torchrun_config){.present = at.node != NULL, .proc_per_node = "1"};
    if (decode_members(&at, KNOWN, NULL, err) < 0 || json_get_bool(&at, "enable", &ret->enabled, err) < 0 ||
        json_get_bool(&at, "enabled", &ret->enabled, err) < 0 ||
        json_get_i32(&at, "maxRestarts", 0, INT32_MAX, &ret->max_restarts, err) < 0 ||
        decode_proc_per_node(&at, a, &ret->proc_per_node, err) < 0 ||
        decode_word(&at, "rdzvBackend", BACKENDS, &backend, err) < 0 ||
        decode_word(&at, "launcher", LAUNCHERS, &launcher, err) < 0 ||
        decode_strings(&at, "extraOptions", OPTIONS_MAX, OPTION_BYTES, a, &ret->extra_options,
                       &ret->n_extra_options, err) < 0 ||
        json_get_i32(&at, "minNodes", 0, TRAINJOB_PODS_MAX, &ret->min_nodes, err) < 0)
        return -1;
    ret->rdzv_backend = (enum rdzv_backend)backend;
    ret->launcher = (enum launcher)launcher;
    if (ret->launcher == LAUNCHER_TORCHKEEPER && !ret->enabled)
        return json_err(DECODE_AT(&at, "launcher"), err, "Torchkeeper needs torchrunConfig.enabled: true");
    if (ret->launcher == LAUNCHER_TORCHKEEPER && backend >= RDZV_ETCD)
        return json_err(DECODE_AT(&at, "launcher"), err,
                        "Torchkeeper needs the rdzvBackend c10d or static, got %s", BACKENDS[backend]);
    if (ret->enabled && backend >= RDZV_ETCD && !names_endpoint(ret))
        return json_err(DECODE_AT(&at, "rdzvBackend"), err,
                        "%s needs --rdzv_endpoint=<host:port> in extraOptions", BACKENDS[backend]);
    return 0;
}

static int decode_exit_codes(const struct json_at *at, struct run_policy *ret, struct err *err)
{
    struct json_at list = json_member(at, "retryableExitCodes");

    if (json_expect_array(&list, TRAINJOB_EXIT_CODES_MAX, err) < 0)
        return -1;
    for (struct json_at item = {0}; decode_next(&list, &item);) {
        double v = cJSON_IsNumber(item.node) ? item.node->valuedouble : -1;
        if (!(v >= 1 && v <= 255) || v != (int32_t)v)
            return json_err(&item, err, "expected an integer 1..255");
        ret->retryable_exit_codes[ret->n_retryable_exit_codes++] = (int32_t)v;
    }
    return 0;
}

/* Whether it is a domain, "/" and a path. */
static bool is_domain_path(const char *s)
{
    size_t domain = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789.-");

    return domain && s[0] != '.' && s[0] != '-' && s[domain] == '/' && s[domain - 1] != '.' &&
           s[domain - 1] != '-' && s[domain + 1] && !strpbrk(s, " \t\n\"\\<>[]{}|^`@#?");
}

/* spec.managedBy is the path that other controllers read; runPolicy.managedBy means the same. */
static int decode_manager(const struct json_at *spec, const struct json_at *policy, const char **ret,
                          struct err *err)
{
    const char *who = NULL, *old = NULL;

    if (decode_text(spec, "managedBy", MANAGER_PATH_BYTES, &who, err) < 0 ||
        decode_text(policy, "managedBy", MANAGER_BYTES, &old, err) < 0)
        return -1;
    if (who && !is_domain_path(who))
        return json_err(DECODE_AT(spec, "managedBy"), err,
                        "expected a domain and a path, such as " TRAINJOB_MULTIKUEUE ", got \"%.80s\"", who);
    if (old && strcmp(old, TRAINJOB_MULTIKUEUE) == 0)
        return json_err(DECODE_AT(policy, "managedBy"), err,
                        "expected " TRAINJOB_MULTIKUEUE
                        " in spec.managedBy alone: MultiKueue does not remove this one "
                        "from the copy in the worker cluster");
    if (who && old && strcmp(who, old) != 0)
        return json_err(DECODE_AT(spec, "managedBy"), err,
                        "expected the same as in runPolicy.managedBy, \"%.80s\"", old);
    *ret = who ? who : old;
    return 0;
}

int trainjob_decode_run_policy(const struct json_at *spec, const struct trainjob_spec *s,
                               struct run_policy *ret, struct err *err)
{
    static const char *const KNOWN[] = {"activeDeadlineSeconds",
                                        "backoffLimit",
                                        "cleanUpPolicy",
                                        "restartScope",
                                        "ttlSecondsAfterFinished",
                                        "startDeadlineSeconds",
                                        "forceDeleteAfterSeconds",
                                        "retryableExitCodes",
                                        "managedBy",
                                        "podFailurePolicy",
                                        "schedulingPolicy",
                                        "progressTimeoutSeconds",
                                        "sidecarGraceSeconds",
                                        "networkPolicy",
                                        "lastWords",
                                        "avoidNodes",
                                        NULL};
    static const char *const CLEANUP[] = {"None", "Unfinished", "All", NULL};
    static const char *const SCOPES[] = {"Job", "Replica", NULL};
    struct json_at at = json_member(spec, "runPolicy");
    int cleanup = CLEANUP_UNFINISHED;
    int scope = -1;
    bool policy = true, words = true, avoid = true;

    *ret = (struct run_policy){.backoff_limit = TRAINJOB_BACKOFF_LIMIT,
                               .sidecar_grace_s = TRAINJOB_SIDECAR_GRACE_S};
    if (decode_members(&at, KNOWN, NULL, err) < 0 ||
        decode_opt_i64(&at, "activeDeadlineSeconds", 1, INT32_MAX, &ret->active_deadline_s, err) < 0 ||
        decode_opt_i64(&at, "ttlSecondsAfterFinished", 0, INT32_MAX, &ret->ttl_after_finished_s, err) < 0 ||
        decode_opt_i64(&at, "startDeadlineSeconds", 0, INT32_MAX, &ret->start_deadline_s, err) < 0 ||
        decode_opt_i64(&at, "forceDeleteAfterSeconds", 0, INT32_MAX, &ret->force_delete_after_s, err) < 0 ||
        decode_opt_i64(&at, "progressTimeoutSeconds", CONTRACT_PROGRESS_TIMEOUT_MIN_S,
                       CONTRACT_PROGRESS_TIMEOUT_MAX_S, &ret->progress_timeout_s, err) < 0 ||
        json_get_i32(&at, "backoffLimit", 0, INT32_MAX, &ret->backoff_limit, err) < 0 ||
        json_get_i32(&at, "sidecarGraceSeconds", 0, INT32_MAX, &ret->sidecar_grace_s, err) < 0 ||
        json_get_bool(&at, "networkPolicy", &policy, err) < 0 ||
        json_get_bool(&at, "lastWords", &words, err) < 0 ||
        json_get_bool(&at, "avoidNodes", &avoid, err) < 0 ||
        decode_word(&at, "cleanUpPolicy", CLEANUP, &cleanup, err) < 0 ||
        decode_word(&at, "restartScope", SCOPES, &scope, err) < 0 || decode_exit_codes(&at, ret, err) < 0 ||
        trainjob_decode_failure_policy(&at, s, &ret->failure_rules, err) < 0 ||
        decode_manager(spec, &at, &ret->managed_by, err) < 0)
        return -1;
    ret->open_network = !policy;
    ret->no_last_words = !words;
    ret->no_avoiding = !avoid;
    ret->cleanup_policy = (enum cleanup_policy)cleanup;
    ret->restart_scope = (enum restart_scope)(scope + 1);
    return 0;
}
