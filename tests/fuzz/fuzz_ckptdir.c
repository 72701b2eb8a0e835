/* fuzz_ckptdir.c - a run's folder in which somebody has made entries: the input is their names, one per line. What counts as a
 * checkpoint is one of them, and a run that writes beside them, and keeps one, removes only checkpoints, and none that is newer. */
#include "fuzz_file.h"

#include "trainer/state/files/ckpt_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { NAMES_MAX = 8 };

struct folder {
    char path[FUZZ_FOLDER_BYTES];
    char name[NAMES_MAX][64];
    int n;
};

static void fill(struct folder *f, char *text)
{
    for (char *next = text; next && f->n < NAMES_MAX;) {
        const char *name = strsep(&next, "\n");
        char path[160];
        snprintf(path, sizeof(path), "%s/%.60s", f->path, name);
        if (strlen(name) > 60 || strchr(name, '/') || strncmp(name, ".tmp-", 5) == 0 ||
            mkdir(path, 0755) != 0)
            continue;
        snprintf(f->name[f->n++], sizeof(f->name[0]), "%s", name);
    }
}

static bool has(const struct folder *f, const char *name)
{
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->name[i], name) == 0)
            return true;
    return false;
}

static int put(void *ctx, const struct pt_sink *sink, struct err *err)
{
    (void)ctx;
    return sink->write(sink->ctx, "weights", 7, err);
}

static void write_ours(const struct folder *f)
{
    cleanup_ckpt_writer struct ckpt_writer w = {0};
    const struct manifest m = {.step = 7, .config = 1, .run_id = "ours"};
    struct err err = {0};

    for (int i = 0; i < 2; i++) {
        MUST(ckpt_begin(&w, f->path, &m, NULL, &err) == 0 &&
             ckpt_file(&w, "model.safetensors", put, NULL, &err) == 0);
        if (ckpt_commit(&w, 1, &err) < 0) {
            MUST(err.msg[0]);
            ckpt_abort(&w);
        }
    }
}

static void remove_all(const struct folder *f)
{
    DIR *dir = opendir(f->path);

    MUST(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        char path[PATH_MAX], file[PATH_MAX + 32];
        snprintf(path, sizeof(path), "%s/%s", f->path, e->d_name);
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        MUST(strncmp(e->d_name, ".tmp-", 5) != 0);
        snprintf(file, sizeof(file), "%s/model.safetensors", path);
        (void)unlink(file);
        snprintf(file, sizeof(file), "%s/manifest.json", path);
        (void)unlink(file);
        MUST(rmdir(path) == 0);
    }
    closedir(dir);
    MUST(rmdir(f->path) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_arena struct arena a = {0};
    struct folder f = {.n = 0};
    struct ckpt_list list;
    struct err err;

    if (size > 1024)
        return 0;
    fuzz_folder_make(f.path);
    fill(&f, arena_strndup(&a, (const char *)data, size));
    MUST(ckpt_list(f.path, &a, &list, &err) == 0 && list.len <= (size_t)f.n);
    for (size_t i = 0; i < list.len; i++) {
        MUST(has(&f, list.entry[i].name) && list.entry[i].step >= 0);
        MUST(i == 0 || list.entry[i].step <= list.entry[i - 1].step);
    }
    write_ours(&f);
    for (int i = 0; i < f.n; i++) {
        char path[160];
        bool older = false;
        for (size_t k = 0; k < list.len; k++)
            older = older || (list.entry[k].step <= 7 && strcmp(list.entry[k].name, f.name[i]) == 0);
        snprintf(path, sizeof(path), "%s/%s", f.path, f.name[i]);
        MUST(older || access(path, F_OK) == 0);
    }
    remove_all(&f);
    return 0;
}
