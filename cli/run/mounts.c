/* mounts.c - find the volumes of a pod, write ConfigMaps into a temporary folder, and change the paths of the command. */
#include "cli/run/mounts.h"

#include "cli/jobfile.h"
#include "cli/names.h"
#include "cli/say.h"
#include "cli/submit/base64.h"
#include "cli/usage.h"
#include "common/fsutil.h"
#include "common/sv.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 8 << 20, FILE_MODE = 0644, OPEN_FILES = 16 };

static const char SHARED_MEMORY[] = "/dev/shm";

/* The parts of a ConfigMap. */
static const char *const LISTS[] = {"data", "binaryData"};

/* One mount of a pod. */
struct mounting {
    struct mounts *m;
    struct arena *a;
    const char *pod, *path;        /* `path` without a slash at its end */
    const char *volume, *sub_path; /* sub_path: "" is the whole volume */
    const char *kind;              /* "configMap" */
    const cJSON *source;           /* the volume's member of that name; NULL: it has none */
};

/* A path below a folder that does not lead out of it. */
static bool is_inside(const char *path)
{
    struct sv rest = sv_from(path), part;

    while (sv_next(&rest, '/', &part))
        if (sv_eq(part, ".."))
            return false;
    return path[0] != '/';
}

/* ---- --volume */

static const char *given_folder(const struct mounts *m, const char *volume)
{
    const size_t len = strlen(volume);
    const char *text, *ret = NULL;

    for (int i = 0; (text = args_each(m->args, "volume", i)); i++)
        if (strncmp(text, volume, len) == 0 && text[len] == '=')
            ret = text + len + 1;
    return ret;
}

static bool has_volume(const struct trainjob *job, struct sv name)
{
    for (int i = 0; i < job->spec.n_replica_specs; i++) {
        const cJSON *template = job->spec.replica_specs[i].template, *v;
        cJSON_ArrayForEach(v, json_find(template, (const char *[]){"spec", "volumes", NULL}))
        {
            const char *own = json_str(v, "name");
            if (own && sv_eq(name, own))
                return true;
        }
    }
    return false;
}

int mounts_check(const struct mounts *m, struct err *err)
{
    const char *text;
    struct stat st;

    for (int i = 0; (text = args_each(m->args, "volume", i)); i++) {
        const char *equals = strchr(text, '=');
        if (!equals || equals == text || !equals[1])
            return usage_wrong(err, "--volume: expected NAME=FOLDER, got \"%.60s\"", text);
        if (!has_volume(m->job, (struct sv){text, (size_t)(equals - text)}))
            return err_set(err, ERR_INVALID, "--volume: the job has no volume \"%.*s\"", (int)(equals - text),
                           text);
        if (stat(equals + 1, &st) < 0)
            return err_errno(err, ERR_INVALID, errno, "--volume: %.120s", equals + 1);
        if (!S_ISDIR(st.st_mode))
            return err_set(err, ERR_INVALID, "--volume: %.120s: expected a folder", equals + 1);
    }
    return 0;
}

/* ---- ConfigMaps */

static const cJSON *find_map(const struct mounting *g, const char *name)
{
    const cJSON *entry;

    cJSON_ArrayForEach(entry, g->m->entries)
    {
        const cJSON *o = jobfile_object(entry);
        const char *kind = json_str(o, "kind"), *own = json_meta(o, "name"), *ns = json_meta(o, "namespace");
        if (kind && strcmp(kind, "ConfigMap") == 0 && own && strcmp(own, name) == 0 &&
            (!ns || strcmp(ns, g->m->job->ns) == 0))
            return entry;
    }
    return NULL;
}

static int check_value(const char *place, const char *list, const cJSON *value, const cJSON *data,
                       struct err *err)
{
    const char *key = value->string;

    if (!names_is_key(key))
        return err_set(
            err, ERR_INVALID,
            "%.160s: %s: the key \"%.80s\": expected letters, digits, -, _ and ., no . alone and no "
            ".. at its beginning",
            place, list, key);
    if (!cJSON_IsString(value))
        return err_set(err, ERR_INVALID, "%.160s: %s: the key \"%.80s\": expected a string as its value",
                       place, list, key);
    if (json_child(data, key))
        return err_set(err, ERR_INVALID, "%.160s: %s: the key \"%.80s\" is in data, too", place, list, key);
    return 0;
}

/* No API server has read it. */
static int check_map(const cJSON *entry, struct err *err)
{
    const cJSON *map = jobfile_object(entry), *value;

    for (size_t i = 0; i < ARRAY_LEN(LISTS); i++) {
        const cJSON *list = json_child(map, LISTS[i]);
        const cJSON *data = i ? json_child(map, LISTS[0]) : NULL;
        if (list && !cJSON_IsObject(list))
            return err_set(err, ERR_INVALID, "%.160s: %s: expected an object of keys and strings",
                           jobfile_place(entry), LISTS[i]);
        cJSON_ArrayForEach(value, list)
        {
            if (check_value(jobfile_place(entry), LISTS[i], value, data, err) < 0)
                return -1;
        }
    }
    return 0;
}

static bool is_optional(const struct mounting *g)
{
    return cJSON_IsTrue(json_child(g->source, "optional"));
}

static int write_bytes(const char *at, const struct buf *bytes, int mode, struct err *err)
{
    cleanup_close int fd = open(at, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0 || fs_write_all(fd, bytes->data, bytes->len) < 0 || fchmod(fd, (mode_t)mode & 0777) < 0)
        return err_errno(err, ERR_FATAL, errno, "%.160s", at);
    return 0;
}

/* The value of `key` as the file `path` of the volume. */
static int write_key(const struct mounting *g, const char *folder, const cJSON *map, const char *key,
                     const char *path, int mode, struct err *err)
{
    const char *name = json_meta(map, "name");
    const char *text = json_str(json_child(map, LISTS[0]), key);
    const char *base64 = json_str(json_child(map, LISTS[1]), key);
    const bool optional = is_optional(g);
    cleanup_buf struct buf bytes = BUF_INIT(FILE_BYTES_MAX);
    char *at = arena_printf(g->a, "%s/%s", folder, path), *slash = strrchr(at, '/');

    if (!path[0] || !is_inside(path))
        return err_set(err, ERR_INVALID, "volume %.63s: the path \"%.80s\" leads out of it", g->volume, path);
    if (!text && !base64)
        return optional ? 0
                        : err_set(err, ERR_INVALID,
                                  "volume %.63s: the ConfigMap %.80s has no text under the key %.80s",
                                  g->volume, name, key);
    if (text ? buf_puts(&bytes, text, err) < 0 : base64_decode(base64, &bytes, err) < 0)
        return err_wrap(err, "ConfigMap %.80s, key %.80s", name, key);
    *slash = '\0';
    if (fs_mkdirs(at, err) < 0)
        return -1;
    *slash = '/';
    if (write_bytes(at, &bytes, mode, err) < 0)
        return err->code == EEXIST
                   ? err_set(err, ERR_INVALID, "volume %.63s: the path \"%.80s\" is given twice", g->volume,
                             path)
                   : -1;
    return 0;
}

static int write_items(const struct mounting *g, const char *folder, const cJSON *map, int mode,
                       struct err *err)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, json_child(g->source, "items"))
    {
        const char *key = json_str(item, "key"), *path = json_str(item, "path");
        if (!key || !path)
            return err_set(err, ERR_INVALID, "volume %.63s: an item needs key and path", g->volume);
        if (write_key(g, folder, map, key, path, (int)json_i64(item, "mode", mode), err) < 0)
            return -1;
    }
    return 0;
}

static int write_map(const struct mounting *g, const char *folder, struct err *err)
{
    const char *name = json_str(g->source, "name");
    const cJSON *map = jobfile_object(find_map(g, name ? name : "")), *value;
    const int mode = (int)json_i64(g->source, "defaultMode", FILE_MODE);

    if (cJSON_GetArraySize(json_child(g->source, "items")))
        return write_items(g, folder, map, mode, err);
    for (size_t i = 0; i < ARRAY_LEN(LISTS); i++)
        cJSON_ArrayForEach(value, json_child(map, LISTS[i]))
        {
            if (write_key(g, folder, map, value->string, value->string, mode, err) < 0)
                return -1;
        }
    return 0;
}

/* ---- one mount */

/* Why there is no folder for it. */
static int refuse(const struct mounting *g, struct err *err)
{
    static const char *const NAMES[] = {"claimName", "secretName", "name", "path"};
    const char *name = NULL;

    for (size_t i = 0; i < ARRAY_LEN(NAMES) && !name; i++)
        name = json_str(g->source, NAMES[i]);
    return err_set(
        err, ERR_INVALID,
        "pod %.63s: %.80s is on the volume %.63s (%.40s%s%.80s), which is not %s: give it a folder: "
        "--volume %.63s=FOLDER",
        g->pod, g->path, g->volume, g->kind, name ? " " : "", name ? name : "",
        strcmp(g->kind, "configMap") ? "on this machine" : "in the manifest's file", g->volume);
}

static bool is_kind(const struct mounting *g, const char *kind)
{
    return strcmp(g->kind, kind) == 0;
}

/* Make the temporary folder of this volume, number `index` of the pod's; of a volume that is mounted twice it is there. */
static int make_folder(const struct mounting *g, int index, const char **ret, struct err *err)
{
    char *folder = g->m->folder;
    const char *tmp = getenv("TMPDIR");

    if (!folder[0]) {
        tmp = tmp && tmp[0] ? tmp : "/tmp";
        cleanup_free char *real = realpath(tmp, NULL); /* a program may go to another folder */
        snprintf(folder, sizeof(g->m->folder), "%s/ptj-run-XXXXXX", real ? real : tmp);
        if (!mkdtemp(folder))
            return folder[0] = '\0', err_errno(err, ERR_FATAL, errno, "%.160s", tmp);
    }
    *ret = arena_printf(g->a, "%s/%s-%d", folder, g->pod, index);
    if (mkdir(*ret, 0700) < 0)
        return errno == EEXIST ? 0 : err_errno(err, ERR_FATAL, errno, "%.160s", *ret);
    return is_kind(g, "configMap") ? write_map(g, *ret, err) : 0;
}

/* *ret: the folder with what is in the volume; NULL: in a dry run there is none. */
static int find_folder(const struct mounting *g, int index, const char **ret, struct err *err)
{
    const char *given = given_folder(g->m, g->volume);
    const bool of_map = is_kind(g, "configMap");
    const char *name = of_map ? json_str(g->source, "name") : NULL;
    const cJSON *map = name ? find_map(g, name) : NULL;

    *ret = NULL;
    if (given) {
        cleanup_free char *real = realpath(given, NULL);
        *ret = arena_strdup(g->a, real ? real : given);
    } else if (map && check_map(map, err) < 0) {
        return -1;
    } else if (!is_kind(g, "emptyDir") && !map && !(of_map && is_optional(g))) {
        refuse(g, err);
        if (!g->m->dry_run)
            return -1;
        g->m->refused = true;
        say("kubectl ptj run", "%s", err->msg);
    } else if (g->m->dry_run) {
        say("kubectl ptj run", "pod %s: %s is on the volume %s, for which a run makes a temporary folder",
            g->pod, g->path, g->volume);
    } else {
        return make_folder(g, index, ret, err);
    }
    return 0;
}

/* *ret: where the mount's path is here; NULL: it stays as it is. */
static int find_path(const struct mounting *g, int index, const char **ret, struct err *err)
{
    if (find_folder(g, index, ret, err) < 0)
        return -1;
    if (!*ret || !g->sub_path[0])
        return 0;
    *ret = arena_printf(g->a, "%s/%s", *ret, g->sub_path);
    /* As the kubelet does. Of a ConfigMap it may be a file. */
    return g->m->dry_run || is_kind(g, "configMap") ? 0 : fs_mkdirs(*ret, err);
}

static int index_of(const cJSON *list, const cJSON *item)
{
    int i = 0;

    for (const cJSON *c = list->child; c != item; c = c->next)
        i++;
    return i;
}

/* The volume's source is its one member beside the name. */
static int read_mount(struct mounting *g, const cJSON *mount, const cJSON *volumes, int *ret_index,
                      struct err *err)
{
    const char *path = json_str(mount, "mountPath");
    const char *name = json_str(mount, "name"), *sub_path = json_str(mount, "subPath");
    const cJSON *volume = json_item_with(volumes, "name", name), *member;
    struct sv p = sv_from(path ? path : "");

    while (sv_ends(p, "/"))
        p.len--;
    if (!p.len || path[0] != '/' || !volume)
        return err_set(err, ERR_INVALID,
                       "pod %.63s: volumeMounts: %.80s of the volume \"%.63s\": expected an absolute path "
                       "below /, and a volume of the template",
                       g->pod, path ? path : "nothing", name ? name : "");
    if (json_str(mount, "subPathExpr") || (sub_path && !is_inside(sub_path)))
        return err_set(err, ERR_INVALID,
                       "pod %.63s: volumeMounts: %.80s: a subPathExpr, or a subPath that leads out of the "
                       "volume, is not supported",
                       g->pod, path);
    g->path = arena_strndup(g->a, p.p, p.len);
    g->volume = name;
    g->sub_path = sub_path ? sub_path : "";
    g->kind = "emptyDir"; /* the API server's default */
    g->source = NULL;
    cJSON_ArrayForEach(member, volume) if (strcmp(member->string, "name") != 0 && !cJSON_IsNull(member))
    {
        g->kind = member->string;
        g->source = member;
    }
    *ret_index = index_of(volumes, volume);
    return 0;
}

static int change_paths(struct localpod *pod, const struct expand_path *paths, int n, struct arena *a,
                        struct err *err)
{
    for (int i = 0; pod->argv[i]; i++)
        if (!(pod->argv[i] = expand_paths(a, pod->argv[i], paths, n, err)))
            return -1;
    for (int i = 0; i < pod->n_env; i++) {
        struct localpod_variable *v = &pod->env[i];
        if (v->value && !v->from && !(v->value = expand_paths(a, v->value, paths, n, err)))
            return -1;
    }
    return 0;
}

int mounts_apply(struct mounts *m, struct localpod *pod, struct arena *a, struct err *err)
{
    const cJSON *volumes = json_child(pod->spec, "volumes"), *mount;
    const cJSON *mounts = json_child(trainjob_training_container(pod->spec), "volumeMounts");
    struct expand_path *paths = arena_array(a, (size_t)cJSON_GetArraySize(mounts) + 1, struct expand_path);
    int n = 0, index = 0;

    cJSON_ArrayForEach(mount, mounts)
    {
        struct mounting g = {.m = m, .a = a, .pod = pod->name};
        const char *to;
        if (read_mount(&g, mount, volumes, &index, err) < 0)
            return -1;
        if (is_kind(&g, "emptyDir") && strcmp(g.path, SHARED_MEMORY) == 0)
            continue;
        if (find_path(&g, index, &to, err) < 0)
            return -1;
        if (to)
            paths[n++] = (struct expand_path){g.path, to};
    }
    return change_paths(pod, paths, n, a, err);
}

/* What nftw reads next was closed to this user: there may be more in it. */
static bool opened;

static int open_one(const char *path, const struct stat *st, int flag, struct FTW *where)
{
    (void)where;
    if ((flag == FTW_D || flag == FTW_DNR) && (st->st_mode & S_IRWXU) != S_IRWXU &&
        chmod(path, st->st_mode | S_IRWXU) == 0)
        opened |= flag == FTW_DNR;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *where)
{
    (void)st, (void)flag, (void)where;
    const int failed = remove(path);
    (void)failed;
    return 0;
}

void mounts_remove(struct mounts *m)
{
    if (!m->folder[0])
        return;
    do {
        opened = false;
        (void)nftw(m->folder, open_one, OPEN_FILES, FTW_PHYS);
    } while (opened);
    (void)nftw(m->folder, remove_one, OPEN_FILES, FTW_DEPTH | FTW_PHYS);
    if (access(m->folder, F_OK) == 0)
        say("kubectl ptj run", "could not remove the temporary folder %s", m->folder);
    m->folder[0] = '\0';
}
