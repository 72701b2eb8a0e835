/* trainjob_runmode.c - decode spec.runMode: debug, pause, and commands that replace the template's. */
#include "operator/api/trainjob.h"

#include <string.h>

enum { WORDS_MAX = 64, WORD_BYTES = 4096 };

static bool type_exists(const struct trainjob_spec *spec, const char *type)
{
    for (int i = 0; i < spec->n_replica_specs; i++)
        if (strcmp(spec->replica_specs[i].type, type) == 0)
            return true;
    return false;
}

static int decode_one(const struct json_at *at, bool with_args, struct arena *a, struct run_instead *r,
                      struct err *err)
{
    static const char *const ALL[] = {"type", "skipInitContainer", "command", "args", NULL};
    static const char *const NO_ARGS[] = {"type", "skipInitContainer", "command", NULL};

    if (decode_members(at, with_args ? ALL : NO_ARGS, NULL, err) < 0 ||
        json_get_str(at, "type", &r->type, err) < 0 ||
        json_get_bool(at, "skipInitContainer", &r->skip_init, err) < 0 ||
        decode_strings(at, "command", WORDS_MAX, WORD_BYTES, a, &r->command, &r->n_command, err) < 0 ||
        decode_strings(at, "args", WORDS_MAX, WORD_BYTES, a, &r->args, &r->n_args, err) < 0)
        return -1;
    r->has_command = json_has(at, "command");
    r->has_args = json_has(at, "args");
    return 0;
}

static int decode_list(const struct json_at *parent, const char *key, const struct trainjob_spec *spec,
                       struct arena *a, struct run_mode *ret, struct err *err)
{
    struct json_at list = json_member(parent, key);

    ret->tree = list.node;
    if (json_expect_array(&list, TRAINJOB_TYPES_MAX, err) < 0)
        return -1;
    ret->items = arena_array(a, (size_t)cJSON_GetArraySize(list.node) + 1, struct run_instead);
    for (struct json_at item = {0}; decode_next(&list, &item);) {
        struct run_instead *r = &ret->items[ret->n];
        if (decode_one(&item, strcmp(key, "resumeSpecs") == 0, a, r, err) < 0)
            return -1;
        if (!r->type || !type_exists(spec, r->type))
            return json_err(DECODE_AT(&item, "type"), err,
                            "expected one of the types of spec.replicaSpecs, got %s%.60s%s",
                            r->type ? "\"" : "", r->type ? r->type : "nothing", r->type ? "\"" : "");
        for (int i = 0; i < ret->n; i++)
            if (strcmp(ret->items[i].type, r->type) == 0)
                return json_err(&item, err, "the type \"%s\" is given twice", r->type);
        ret->n++;
    }
    return 0;
}

int trainjob_decode_run_mode(const struct json_at *spec, struct arena *a, struct trainjob_spec *ret,
                             struct err *err)
{
    static const char *const KNOWN[] = {"debug", "pause", NULL};
    static const char *const DEBUG[] = {"enabled", "replicaSpecs", NULL};
    static const char *const PAUSE[] = {"enabled", "resumeSpecs", NULL};
    struct json_at mode = json_member(spec, "runMode");
    struct json_at debug = json_member(&mode, "debug");
    struct json_at pause = json_member(&mode, "pause");

    if (decode_members(&mode, KNOWN, NULL, err) < 0 || decode_members(&debug, DEBUG, NULL, err) < 0 ||
        decode_members(&pause, PAUSE, NULL, err) < 0 ||
        json_get_bool(&debug, "enabled", &ret->debug.enabled, err) < 0 ||
        decode_list(&debug, "replicaSpecs", ret, a, &ret->debug, err) < 0 ||
        json_get_bool(&pause, "enabled", &ret->resume.enabled, err) < 0)
        return -1;
    return decode_list(&pause, "resumeSpecs", ret, a, &ret->resume, err);
}
