/* trainjob_tensorboard.c - decode spec.tensorboardSpec. */
#include "operator/api/trainjob.h"

#include "common/sv.h"
#include "operator/api/quantity.h"

#include <string.h>

enum { LOGS_MAX = 16, PVCS_MAX = 8, SUBPATH_BYTES = 512, FILESET_BYTES = 776, IMAGE_BYTES = 4096 };

/* "./log//a/." -> "log/a". NULL: the path leaves the volume with "..". */
static const char *normalise(struct arena *a, const char *path)
{
    char *out = arena_alloc(a, strlen(path) + 2);
    size_t len = 0;
    struct sv rest = sv_from(path);
    struct sv part;

    while (sv_next(&rest, '/', &part)) {
        if (part.len == 0 || sv_eq(part, "."))
            continue;
        if (sv_eq(part, ".."))
            return NULL;
        if (len)
            out[len++] = '/';
        memcpy(out + len, part.p, part.len);
        len += part.len;
    }
    out[len] = '\0';
    return out;
}

static int add_path(const struct json_at *at, struct arena *a, struct tensorboard_log *log, const char *path,
                    struct err *err)
{
    log->path = normalise(a, path);
    if (!log->path)
        return json_err(at, err, "expected a path inside the volume, got \"%.80s\"", path);
    /* TensorBoard's list of log folders has no quoting. */
    if (strpbrk(log->path, ",:"))
        return json_err(at, err, "expected a path without ',' and ':', got \"%.80s\"", path);
    return 0;
}

/* Whether `name` is a valid PVC name. A path may follow it in the text. */
static bool is_pvc(struct sv name)
{
    return name.len > 0 && name.len <= 253 && !memchr(name.p, ',', name.len) &&
           !memchr(name.p, ':', name.len) && !memchr(name.p, '/', name.len);
}

static int decode_pvc(const struct json_at *at, struct arena *a, struct tensorboard_log *logs, int *n,
                      struct err *err)
{
    static const char *const KNOWN[] = {"name", "subPath", NULL};
    struct json_at list = json_member(at, "subPath");
    const char *pvc = NULL;
    const char *const *paths = NULL;
    int n_paths = 0;

    if (decode_members(at, KNOWN, NULL, err) < 0 || json_get_str(at, "name", &pvc, err) < 0 ||
        decode_strings(at, "subPath", LOGS_MAX, SUBPATH_BYTES, a, &paths, &n_paths, err) < 0)
        return -1;
    if (!pvc || !is_pvc(sv_from(pvc)))
        return json_err(DECODE_AT(at, "name"), err, "expected the name of a PersistentVolumeClaim");
    for (int i = 0; i < (n_paths ? n_paths : 1); i++) {
        struct json_at item = json_item(&list, NULL, i);
        if (*n == LOGS_MAX)
            return json_err(at, err, "expected at most %d log folders in all", LOGS_MAX);
        struct tensorboard_log *log = &logs[(*n)++];
        log->pvc = pvc;
        if (add_path(&item, a, log, n_paths ? paths[i] : "", err) < 0)
            return -1;
    }
    return 0;
}

static int decode_log_dir(const struct json_at *tb, struct arena *a, struct tensorboard_spec *ret,
                          struct err *err)
{
    static const char *const KNOWN[] = {"pvc", NULL};
    static const char *const REFUSED[] = {"s3", "http", NULL};
    struct json_at dir = json_member(tb, "logDir");
    struct json_at pvc = json_member(&dir, "pvc");

    if (decode_members(&dir, KNOWN, REFUSED, err) < 0 || json_expect_array(&pvc, PVCS_MAX, err) < 0)
        return -1;
    if (cJSON_GetArraySize(pvc.node) < 1)
        return json_err(&pvc, err, "expected at least one PVC");
    struct tensorboard_log *logs = arena_array(a, LOGS_MAX, struct tensorboard_log);
    for (struct json_at item = {0}; decode_next(&pvc, &item);)
        if (decode_pvc(&item, a, logs, &ret->n_logs, err) < 0)
            return -1;
    ret->logs = logs;
    return 0;
}

/* T9k's notation: t9k://pvc/NAME/PATH. */
static int decode_filesets(const struct json_at *tb, struct arena *a, struct tensorboard_spec *ret,
                           struct err *err)
{
    static const char SCHEME[] = "t9k://pvc/";
    struct json_at list = json_member(tb, "trainingLogFilesets");
    const char *const *texts = NULL;
    int n = 0;

    if (decode_strings(tb, "trainingLogFilesets", LOGS_MAX, FILESET_BYTES, a, &texts, &n, err) < 0)
        return -1;
    if (n && json_has(tb, "logDir"))
        return json_err(&list, err, "expected it or logDir, not both");
    struct tensorboard_log *logs = arena_array(a, LOGS_MAX, struct tensorboard_log);
    for (int i = 0; i < n; i++) {
        struct json_at item = json_item(&list, NULL, i);
        const bool known = sv_starts(sv_from(texts[i]), SCHEME);
        struct sv rest = sv_from(texts[i] + (known ? strlen(SCHEME) : 0)), pvc;
        if (!known || !sv_next(&rest, '/', &pvc) || !is_pvc(pvc))
            return json_err(&item, err,
                            "expected t9k://pvc/NAME/PATH; other storage is not supported, got \"%.80s\"",
                            texts[i]);
        logs[i].pvc = arena_strndup(a, pvc.p, pvc.len);
        if (add_path(&item, a, &logs[i], rest.len ? rest.p : "", err) < 0)
            return -1;
    }
    ret->logs = logs;
    ret->n_logs = n;
    return 0;
}

int trainjob_decode_tensorboard(const struct json_at *spec, struct arena *a, struct tensorboard_spec *ret,
                                struct err *err)
{
    static const char *const KNOWN[] = {"logDir",  "trainingLogFilesets",     "image", "resources",
                                        "suspend", "ttlSecondsAfterFinished", NULL};
    static const char *const REFUSED[] = {"scheduler", NULL};
    struct json_at at = json_member(spec, "tensorboardSpec");
    struct json_at resources = json_member(&at, "resources");

    *ret = (struct tensorboard_spec){.present = at.node != NULL};
    if (!at.node)
        return 0;
    if (decode_members(&at, KNOWN, REFUSED, err) < 0 || decode_filesets(&at, a, ret, err) < 0 ||
        (!ret->n_logs && decode_log_dir(&at, a, ret, err) < 0) ||
        decode_text(&at, "image", IMAGE_BYTES, &ret->image, err) < 0 || quantity_check(&at, err) < 0 ||
        json_get_bool(&at, "suspend", &ret->suspend, err) < 0 ||
        decode_opt_i64(&at, "ttlSecondsAfterFinished", 0, INT32_MAX, &ret->ttl_after_finished_s, err) < 0)
        return -1;
    ret->resources = resources.node;
    return 0;
}
