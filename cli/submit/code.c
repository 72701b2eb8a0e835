/* code.c - read a script or a folder, within the bounds of a ConfigMap. */
#include "cli/submit/code.h"

#include "cli/submit/base64.h"
#include "cli/submit/patterns.h"
#include "common/fsutil.h"
#include "common/text.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char IGNORE[] = ".ptjignore";

enum { IGNORE_BYTES_MAX = 64 << 10 };

struct reading {
    struct arena *a;
    struct code *ret;
    const char *root, *include, *ignore;
    size_t bytes;
};

static int too_large(const struct reading *r, struct err *err)
{
    return err_set(err, ERR_INVALID,
                   "%.80s: more than %d bytes, which a ConfigMap holds: put it into the image or on a PVC, "
                   "and submit a "
                   "small script that runs it (--claim)",
                   r->root, CODE_BYTES_MAX);
}

/* `bytes`: its content; NULL: not read yet. */
static int refuse_key(const struct reading *r, const char *at, const char *path, const struct buf *bytes,
                      struct err *err)
{
    const char *why = patterns_key(path, bytes);

    if (!why || patterns_fit(r->include, path, false, 0))
        return 0;
    return err_set(
        err, ERR_INVALID,
        "%.120s: looks like a key (%s), and everyone who may read ConfigMaps could read it: leave it "
        "out (.ptjignore), give its value by --secret NAME=SECRET/KEY, or take it by --include \"%.100s\"",
        at, why, path);
}

static int add_file(struct reading *r, const char *at, const char *path, struct err *err)
{
    cleanup_buf struct buf bytes = BUF_INIT(CODE_BYTES_MAX);
    cleanup_buf struct buf base64 = BUF_INIT(CODE_BYTES_MAX * 2);
    struct code_file *f = &r->ret->files[r->ret->n];

    if (r->ret->n == CODE_FILES_MAX)
        return err_set(err, ERR_INVALID,
                       "%.100s: more than %d files: put them into the image or on a PVC (--claim)", r->root,
                       CODE_FILES_MAX);
    if (!text_is_utf8(sv_from(path)))
        return err_set(err, ERR_INVALID, "%.200s: expected a name in UTF-8: rename it%s", at,
                       r->ret->folder ? ", or leave it out (.ptjignore)" : "");
    if (refuse_key(r, at, path, NULL, err) < 0)
        return -1;
    if (fs_read_regular(at, &bytes, err) < 0)
        return err->kind == ERR_INVALID ? too_large(r, err) : -1; /* it is a regular file */
    r->bytes += bytes.len;
    if (r->bytes > CODE_BYTES_MAX)
        return too_large(r, err);
    if (refuse_key(r, at, path, &bytes, err) < 0)
        return -1;
    int mark = text_mark(buf_str(&bytes), bytes.len, err);
    if (mark < 0 && (!r->ret->folder || sv_ends(sv_from(path), ".py")))
        return err_wrap(err, "%.120s", at);
    if (mark > 0 && strncmp(buf_str(&bytes) + mark, "#!", 2) == 0)
        buf_consume(&bytes, (size_t)mark); /* no kernel looks behind a mark */
    f->path = arena_strdup(r->a, path);
    f->bytes = bytes.len;
    f->binary = bytes.len && (memchr(bytes.data, '\0', bytes.len) ||
                              !text_is_utf8((struct sv){(const char *)bytes.data, bytes.len}));
    if (f->binary && base64_encode(bytes.data, bytes.len, &base64, err) < 0)
        return -1;
    f->content = arena_strdup(r->a, buf_str(f->binary ? &base64 : &bytes));
    r->ret->n++;
    return 0;
}

static int add_folder(struct reading *r, const char *at, const char *path, int depth, struct err *err);

static void skip(const struct reading *r, const char *path, const char *why)
{
    if (r->ret->n_skipped < CODE_FILES_MAX)
        r->ret->skipped[r->ret->n_skipped] = (struct code_skipped){arena_strdup(r->a, path), why};
    r->ret->n_skipped++;
}

static int add_entry(struct reading *r, const char *at, const char *path, int depth, struct err *err)
{
    const char *slash = strrchr(path, '/');
    struct stat st;

    if (strcmp(path, IGNORE) == 0)
        return 0;
    if (lstat(at, &st) < 0)
        return err_errno(err, ERR_FATAL, errno, "%.120s", at);
    if (patterns_fit(r->ignore, path, S_ISDIR(st.st_mode), 0)) {
        r->ret->n_ignored++;
        return 0;
    }
    if (slash ? slash[1] == '.' : path[0] == '.')
        skip(r, path, "its name begins with a dot");
    else if (S_ISREG(st.st_mode))
        return add_file(r, at, path, err);
    else if (S_ISDIR(st.st_mode))
        return add_folder(r, at, path, depth + 1, err);
    else
        skip(r, path, "it is no regular file");
    return 0;
}

static int wanted(const struct dirent *e)
{
    static const char *const NEVER[] = {".", "..", "__pycache__"};

    for (size_t i = 0; i < ARRAY_LEN(NEVER); i++)
        if (strcmp(e->d_name, NEVER[i]) == 0)
            return 0;
    return 1;
}

static int add_folder(struct reading *r, const char *at, const char *path, int depth, struct err *err)
{
    struct dirent **entries = NULL;
    const int n = scandir(at, &entries, wanted, alphasort);
    int failed = 0;

    if (n < 0)
        return err_errno(err, ERR_FATAL, errno, "%.120s", at);
    if (depth > CODE_DEPTH_MAX)
        failed = err_set(err, ERR_INVALID, "%.120s: folders nested over %d levels", at, CODE_DEPTH_MAX);
    for (int i = 0; i < n; i++) {
        const char *below = arena_printf(r->a, "%s%s%s", path, path[0] ? "/" : "", entries[i]->d_name);
        if (!failed && strlen(below) > CODE_PATH_BYTES)
            failed = err_set(err, ERR_INVALID, "%.120s: a path of more than %d bytes", at, CODE_PATH_BYTES);
        if (!failed)
            failed = add_entry(r, arena_printf(r->a, "%s/%s", at, entries[i]->d_name), below, depth, err);
        free(entries[i]);
    }
    free(entries);
    return failed;
}

static int read_ignore(struct reading *r, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(IGNORE_BYTES_MAX);
    const char *at = arena_printf(r->a, "%s/%s", r->root, IGNORE);

    if (fs_read_regular(at, &text, err) < 0)
        return err->kind == ERR_NOT_FOUND ? 0 : -1;
    const int mark = text_mark(buf_str(&text), text.len, err);
    if (mark < 0)
        return err_wrap(err, "%.120s", at);
    r->ignore = arena_strdup(r->a, buf_str(&text) + mark);
    return patterns_check(r->ignore, at, err);
}

int code_read(const char *path, const char *include, struct arena *a, struct code *ret, struct err *err)
{
    struct reading r = {.a = a, .ret = ret, .root = path, .include = include, .ignore = ""};
    const char *slash = strrchr(path, '/');
    struct stat st;

    *ret = (struct code){.files = arena_array(a, CODE_FILES_MAX, struct code_file),
                         .skipped = arena_array(a, CODE_FILES_MAX, struct code_skipped)};
    if (stat(path, &st) < 0)
        return err_errno(err, ERR_INVALID, errno, "%.120s", path);
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return err_set(err, ERR_INVALID, "%.120s: expected a script or a folder", path);
    ret->folder = S_ISDIR(st.st_mode);
    if (!ret->folder)
        return add_file(&r, path, slash ? slash + 1 : path, err);
    if (read_ignore(&r, err) < 0 || add_folder(&r, path, "", 1, err) < 0)
        return -1;
    return ret->n ? 0 : err_set(err, ERR_INVALID, "%.120s: no files in it", path);
}
