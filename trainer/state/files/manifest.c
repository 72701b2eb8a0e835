/* manifest.c - encode and decode a checkpoint's manifest.json. */
#include "trainer/state/files/manifest.h"

#include "trainer/state/files/json_scan.h"

#include <inttypes.h>
#include <string.h>

int manifest_encode(const struct manifest *m, struct buf *out, struct err *err)
{
    if (buf_printf(out, err,
                   "{\n  \"format\": %d,\n  \"step\": %" PRId64 ",\n  \"config\": %" PRIu32
                   ",\n  \"saved_ms\": %" PRId64 ",\n  \"run_id\": ",
                   MANIFEST_FORMAT, m->step, m->config, m->saved_ms) ||
        json_put_string(out, m->run_id, err) || buf_puts(out, ",\n  \"files\": [", err))
        return -1;
    for (int i = 0; i < m->files; i++)
        if (buf_printf(out, err, "%s\n    {\"name\": \"%s\", \"bytes\": %" PRId64 ", \"crc32\": %" PRIu32 "}",
                       i ? "," : "", m->file[i].name, m->file[i].bytes, m->file[i].crc))
            return -1;
    return buf_puts(out, "\n  ]\n}\n", err);
}

static int get_integer(struct json_scan *s, const char *key, int64_t max, int64_t *ret, struct err *err)
{
    if (json_scan_integer(s, ret) || *ret > max)
        return err_set(err, ERR_INVALID, "%s: expected an integer 0..%" PRId64, key, max);
    return 0;
}

static bool is_file_name(const char *name)
{
    size_t len = strlen(name);

    return len && name[0] != '.' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == len;
}

static int decode_file_field(struct json_scan *s, const char *key, struct manifest_file *f, struct err *err)
{
    int64_t v;

    if (strcmp(key, "name") == 0) {
        if (json_scan_string(s, f->name, sizeof(f->name)) || !is_file_name(f->name))
            return err_set(err, ERR_INVALID, "files: name: expected the name of a file");
        return 0;
    }
    if (strcmp(key, "bytes") == 0)
        return get_integer(s, "files: bytes", INT64_C(1) << 53, &f->bytes, err);
    if (strcmp(key, "crc32") != 0)
        return err_set(err, ERR_INVALID, "files: %s: unknown field", key);
    if (get_integer(s, "files: crc32", UINT32_MAX, &v, err))
        return -1;
    f->crc = (uint32_t)v;
    return 0;
}

static int decode_file(struct json_scan *s, struct manifest *m, struct err *err)
{
    struct manifest_file f = {.bytes = -1};
    char key[16];

    if (!json_scan_take(s, '{'))
        return err_set(err, ERR_INVALID, "files: expected objects");
    do {
        if (json_scan_string(s, key, sizeof(key)) || !json_scan_take(s, ':'))
            return err_set(err, ERR_INVALID, "files: expected name, bytes and crc32");
        if (decode_file_field(s, key, &f, err))
            return -1;
    } while (json_scan_take(s, ','));
    if (!json_scan_take(s, '}') || !f.name[0] || f.bytes < 0)
        return err_set(err, ERR_INVALID, "files: expected name, bytes and crc32");
    if (m->files == MANIFEST_FILES_MAX || manifest_find(m, f.name))
        return err_set(err, ERR_INVALID, "files: %s: too many, or twice", f.name);
    m->file[m->files++] = f;
    return 0;
}

static int decode_files(struct json_scan *s, struct manifest *m, struct err *err)
{
    if (!json_scan_take(s, '['))
        return err_set(err, ERR_INVALID, "files: expected an array");
    do {
        if (decode_file(s, m, err))
            return -1;
    } while (json_scan_take(s, ','));
    return json_scan_take(s, ']') ? 0 : err_set(err, ERR_INVALID, "files: expected an array");
}

static int decode_field(struct json_scan *s, const char *key, struct manifest *m, int64_t *format,
                        struct err *err)
{
    int64_t v;

    if (strcmp(key, "format") == 0)
        return get_integer(s, key, INT32_MAX, format, err);
    if (strcmp(key, "step") == 0)
        return get_integer(s, key, INT64_C(1) << 53, &m->step, err);
    if (strcmp(key, "saved_ms") == 0)
        return get_integer(s, key, INT64_C(1) << 53, &m->saved_ms, err);
    if (strcmp(key, "config") == 0) {
        if (get_integer(s, key, UINT32_MAX, &v, err))
            return -1;
        m->config = (uint32_t)v;
        return 0;
    }
    if (strcmp(key, "run_id") == 0)
        return json_scan_string(s, m->run_id, sizeof(m->run_id))
                   ? err_set(err, ERR_INVALID, "run_id: expected text of less than %d bytes",
                             MANIFEST_RUN_ID_BYTES)
                   : 0;
    if (strcmp(key, "files") == 0)
        return decode_files(s, m, err);
    return err_set(err, ERR_INVALID, "%s: unknown field", key);
}

int manifest_decode(const char *text, size_t len, struct manifest *ret, struct err *err)
{
    struct json_scan s = {text, text + len};
    struct manifest m = {.step = -1};
    int64_t format = -1;
    char key[16];

    if (!json_scan_take(&s, '{'))
        return err_set(err, ERR_INVALID, "expected an object");
    do {
        if (json_scan_string(&s, key, sizeof(key)) || !json_scan_take(&s, ':'))
            return err_set(err, ERR_INVALID, "expected format, step, config, run_id and files");
        if (decode_field(&s, key, &m, &format, err))
            return -1;
    } while (json_scan_take(&s, ','));
    if (!json_scan_take(&s, '}') || !json_scan_ended(&s) || m.step < 0 || !m.files)
        return err_set(err, ERR_INVALID, "expected format, step, config, run_id and files");
    if (format != MANIFEST_FORMAT)
        return err_set(err, ERR_INVALID, "format: %" PRId64 ", expected %d", format, MANIFEST_FORMAT);
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
