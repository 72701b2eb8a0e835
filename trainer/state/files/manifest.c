/* manifest.c - encode and decode a checkpoint's manifest.json. */
#include "trainer/state/files/manifest.h"

#include "common/json.h"

#include <inttypes.h>
#include <string.h>

int manifest_encode(const struct manifest *m, struct buf *out, struct err *err)
{
    if (buf_printf(out, err,
                   "{\n  \"format\": %d,\n  \"step\": %" PRId64 ",\n  \"config\": %" PRIu32
                   ",\n  \"saved_ms\": %" PRId64 ",\n  \"launch\": %" PRIu32 ",\n  \"run_id\": ",
                   MANIFEST_FORMAT, m->step, m->config, m->saved_ms, m->launch) ||
        json_write_string(m->run_id, out, err))
        return -1;
    buf_puts(out, ",\n  \"files\": [", NULL);
    for (int i = 0; i < m->files; i++)
        buf_printf(out, NULL, "%s\n    {\"name\": \"%s\", \"bytes\": %" PRId64 ", \"crc32\": %" PRIu32 "}",
                   i ? "," : "", m->file[i].name, m->file[i].bytes, m->file[i].crc);
    buf_puts(out, "\n  ]\n}\n", NULL);
    return buf_check(out, err);
}

static bool is_file_name(const char *name)
{
    size_t len = strlen(name);

    return len && name[0] != '.' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == len;
}

/* Refuse unknown fields: a damaged name would be one. */
static int refuse_unknown(const struct json_at *at, const char *const *known, struct err *err)
{
    const cJSON *member;

    if (!cJSON_IsObject(at->node))
        return json_err(at, err, "expected an object");
    cJSON_ArrayForEach(member, at->node)
    {
        const char *const *k = known;
        while (*k && strcmp(*k, member->string) != 0)
            k++;
        if (!*k)
            return json_err(at, err, "%.40s: unknown field", member->string);
    }
    return 0;
}

static int decode_file(const struct json_at *at, struct manifest *m, struct err *err)
{
    struct manifest_file f = {.bytes = -1};
    const char *name = "";
    int64_t crc = -1;

    if (refuse_unknown(at, (const char *[]){"name", "bytes", "crc32", NULL}, err) ||
        json_get_str(at, "name", &name, err) ||
        json_get_i64(at, "bytes", 0, INT64_C(1) << 53, &f.bytes, err) ||
        json_get_i64(at, "crc32", 0, UINT32_MAX, &crc, err))
        return -1;
    if (!is_file_name(name) || strlen(name) >= sizeof(f.name) || f.bytes < 0 || crc < 0)
        return json_err(at, err, "expected name (of a file), bytes and crc32");
    if (m->files == MANIFEST_FILES_MAX || manifest_find(m, name))
        return json_err(at, err, "%s: too many, or twice", name);
    memcpy(f.name, name, strlen(name));
    f.crc = (uint32_t)crc;
    m->file[m->files++] = f;
    return 0;
}

static int decode_files(const struct json_at *at, struct manifest *m, struct err *err)
{
    const cJSON *item;
    int n = 0;

    if (json_expect_array(at, MANIFEST_FILES_MAX, err))
        return -1;
    cJSON_ArrayForEach(item, at->node)
    {
        struct json_at file = json_item(at, item, n++);
        if (decode_file(&file, m, err))
            return -1;
    }
    return 0;
}

static int decode_run_id(const struct json_at *at, struct manifest *m, struct err *err)
{
    const char *run_id = "";

    if (json_get_str(at, "run_id", &run_id, err))
        return -1;
    if (strlen(run_id) >= sizeof(m->run_id))
        return json_err(at, err, "run_id: expected text of less than %d bytes", MANIFEST_RUN_ID_BYTES);
    memcpy(m->run_id, run_id, strlen(run_id));
    return 0;
}

int manifest_decode(const char *text, size_t len, struct manifest *ret, struct err *err)
{
    struct manifest m = {.format = -1, .step = -1};
    int64_t config = 0;
    int64_t launch = 0;
    cleanup_json cJSON *tree = json_parse(text, len, err);

    if (!tree)
        return -1;
    struct json_at at = json_root(tree, "manifest");
    struct json_at files = json_member(&at, "files");
    static const char *const known[] = {"format", "step",   "config", "saved_ms",
                                        "launch", "run_id", "files",  NULL};
    if (json_get_i64(&at, "format", 0, INT32_MAX, &m.format, err) || decode_run_id(&at, &m, err))
        return -1;
    if (m.format >= 0 && m.format != MANIFEST_FORMAT) {
        *ret = m;
        return err_set(err, ERR_CONFLICT, "format %" PRId64 ", which this version does not read (%d)",
                       m.format, MANIFEST_FORMAT);
    }
    if (refuse_unknown(&at, known, err) || json_get_i64(&at, "step", 0, INT64_C(1) << 53, &m.step, err) ||
        json_get_i64(&at, "saved_ms", 0, INT64_C(1) << 53, &m.saved_ms, err) ||
        json_get_i64(&at, "config", 0, UINT32_MAX, &config, err) ||
        json_get_i64(&at, "launch", 0, UINT32_MAX, &launch, err) || decode_files(&files, &m, err))
        return -1;
    if (m.format < 0 || m.step < 0 || !m.files)
        return json_err(&at, err, "expected format, step, config, run_id and files");
    m.config = (uint32_t)config;
    m.launch = (uint32_t)launch;
    *ret = m;
    return 0;
}

const struct manifest_file *manifest_find(const struct manifest *m, const char *name)
{
    for (int i = 0; i < m->files; i++)
        if (strcmp(m->file[i].name, name) == 0)
            return &m->file[i];
    return NULL;
}
