/* kubeconfig.c - parse kubectl's configuration files and merge several of them: the first entry of a name wins. */
#include "common/fsutil.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/sv.h"
#include "common/yaml.h"
#include "kube/auth/config.h"
#include "kube/auth/userinfo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_MAX = 1000, PATH_BYTES = 4096, FILES_MAX = 32 };

struct file {
    char *path;
    char *dir;
    cJSON *doc;
};

struct files {
    struct file of[FILES_MAX];
    size_t n;
};

static void files_release(struct files *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->of[i].path);
        free(f->of[i].dir);
        cJSON_Delete(f->of[i].doc);
    }
    f->n = 0;
}

/* Each name once: which of two is meant, nobody can know. */
static int check_list(const struct json_at *root, const char *list, struct err *err)
{
    struct json_at at = json_member(root, list);
    const cJSON *entry;
    const cJSON *other;

    if (json_expect_array(&at, LIST_MAX, err) < 0)
        return -1;
    cJSON_ArrayForEach(entry, at.node)
    {
        const char *name = json_str(entry, "name");
        for (other = at.node->child; name && other != entry; other = other->next) {
            const char *its = json_str(other, "name");
            if (its && strcmp(its, name) == 0)
                return json_err(&at, err, "\"%.60s\" is given twice", name);
        }
    }
    return 0;
}

static int check_document(const cJSON *doc, struct err *err)
{
    struct json_at root = json_root(doc, "kubeconfig");
    const char *kind = "Config";
    const char *version = "v1";
    const char *current = "";

    if (json_expect_object(&root, err) < 0 || json_get_str(&root, "kind", &kind, err) < 0 ||
        json_get_str(&root, "apiVersion", &version, err) < 0 ||
        json_get_str(&root, "current-context", &current, err) < 0)
        return -1;
    if (strcmp(kind, "Config") != 0)
        return err_set(err, ERR_INVALID, "kind: expected Config, got \"%.60s\"", kind);
    if (strcmp(version, "v1") != 0)
        return err_set(err, ERR_INVALID, "apiVersion: expected v1, got \"%.60s\"", version);
    if (check_list(&root, "clusters", err) < 0 || check_list(&root, "users", err) < 0)
        return -1;
    return check_list(&root, "contexts", err);
}

static int load(struct files *f, struct sv path, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(YAML_TREE_BYTES_MAX);
    cleanup_arena struct arena a = {0};
    struct yaml_tree *tree;
    char *name = memory_must(strndup(path.p, path.len));

    struct file *to = &f->of[f->n++];
    const char *slash = strrchr(name, '/');
    *to = (struct file){.path = name};
    to->dir = slash == name ? strdup("") : slash ? strndup(name, (size_t)(slash - name)) : strdup(".");
    if (!to->dir)
        memory_exhausted();
    if (fs_read(name, &text, err) < 0)
        return -1;
    if (yaml_tree_parse(name, buf_str(&text), text.len, &a, &tree, err) < 0)
        return -1;
    to->doc = yaml_json(tree);
    return check_document(to->doc, err) < 0 ? err_wrap(err, "%s", name) : 0;
}

/* The first entry of `list` (clusters, users, contexts) with this name; its member `inner` is what is wanted. */
static int find_named(const struct files *f, const char *list, const char *inner, const char *name,
                      const cJSON **ret, const struct file **ret_file, struct err *err)
{
    const cJSON *entry;

    for (size_t i = 0; i < f->n; i++) {
        struct json_at root = json_root(f->of[i].doc, "kubeconfig");
        struct json_at at = json_member(&root, list);
        cJSON_ArrayForEach(entry, at.node)
        {
            const char *its = json_str(entry, "name");
            if (!its || strcmp(its, name) != 0)
                continue;
            *ret = cJSON_GetObjectItemCaseSensitive(entry, inner);
            *ret_file = &f->of[i];
            if (cJSON_IsObject(*ret))
                return 0;
            json_err(&at, err, "\"%.60s\" has no %s", name, inner);
            return err_wrap(err, "%s", f->of[i].path);
        }
    }
    err_set(err, ERR_INVALID, "%s: expected one named \"%.60s\", got none", list, name);
    return f->n == 1 ? err_wrap(err, "%s", f->of[0].path) : -1;
}

static int wrap_entry(const struct file *file, const char *list, const char *name, struct err *err)
{
    err_wrap(err, "%s \"%.60s\"", list, name);
    return err_wrap(err, "%s", file->path);
}

static int read_user(const struct files *f, const char *name, struct kube_config *c, struct err *err)
{
    const cJSON *node = NULL;
    const struct file *file = NULL;

    if (!*name)
        return 0; /* anonymous */
    if (find_named(f, "users", "user", name, &node, &file, err) < 0)
        return -1;
    struct json_at at = json_root(node, "user");
    return userinfo_read(&at, file->dir, c, err) < 0 ? wrap_entry(file, "users", name, err) : 0;
}

static int read_context(const struct files *f, const char *context, struct kube_config *c, struct err *err)
{
    const cJSON *node = NULL;
    const struct file *file = NULL;
    const char *cluster = "";
    const char *user = "";
    const char *ns = "default";

    if (find_named(f, "contexts", "context", context, &node, &file, err) < 0)
        return -1;
    struct json_at at = json_root(node, "context");
    if (json_get_str(&at, "cluster", &cluster, err) < 0 || json_get_str(&at, "user", &user, err) < 0 ||
        json_get_str(&at, "namespace", &ns, err) < 0)
        return wrap_entry(file, "contexts", context, err);
    c->namespace_name = memory_strdup(*ns ? ns : "default");
    if (find_named(f, "clusters", "cluster", cluster, &node, &file, err) < 0)
        return -1;
    struct json_at cluster_at = json_root(node, "cluster");
    if (clusterinfo_read(&cluster_at, file->dir, c, err) < 0)
        return wrap_entry(file, "clusters", cluster, err);
    return read_user(f, user, c, err);
}

/* Where it came from, for refresh.c: the context by its name, since the current one may be another next time. */
static void remember(struct kube_config *c, const char *paths, const char *context)
{
    c->source = strdup(paths);
    c->context = strdup(context);
    if (!c->source || !c->context)
        memory_exhausted();
}

static int read_files(struct kube_config *c, const struct files *f, const char *paths, const char *context,
                      struct err *err)
{
    cleanup_kube_config struct kube_config fresh = {0};
    const char *current = context ? context : "";

    for (size_t i = 0; i < f->n && !*current; i++) {
        const char *its = json_str(f->of[i].doc, "current-context");
        current = its ? its : "";
    }
    if (!*current) {
        err_set(err, ERR_INVALID, "current-context: not set, and no context was asked for");
        return f->n == 1 ? err_wrap(err, "%s", f->of[0].path) : -1;
    }
    if (read_context(f, current, &fresh, err) < 0)
        return -1;
    remember(&fresh, paths, current);
    *c = fresh;
    fresh = (struct kube_config){0};
    return 0;
}

int kube_config_read(struct kube_config *c, const char *path, const char *context, struct err *err)
{
    __attribute__((cleanup(files_release))) struct files f = {0};

    if (load(&f, sv_from(path), err) < 0)
        return -1;
    return read_files(c, &f, path, context, err);
}

static bool is_loaded(const struct files *f, struct sv path)
{
    for (size_t i = 0; i < f->n; i++)
        if (sv_eq(path, f->of[i].path))
            return true;
    return false;
}

int kube_config_read_list(struct kube_config *c, const char *paths, const char *context, struct err *err)
{
    __attribute__((cleanup(files_release))) struct files f = {0};
    struct sv rest = sv_from(paths);
    struct sv path;

    while (sv_next(&rest, ':', &path)) {
        if (!path.len || is_loaded(&f, path))
            continue;
        if (f.n == FILES_MAX)
            return err_set(err, ERR_INVALID, "expected at most %d files", FILES_MAX);
        if (load(&f, path, err) == 0)
            continue;
        if (err->kind != ERR_NOT_FOUND)
            return -1;
        struct file *missing = &f.of[--f.n];
        free(missing->path);
        free(missing->dir);
    }
    if (!f.n)
        return err_set(err, ERR_NOT_FOUND, "\"%.120s\": no such file", paths);
    return read_files(c, &f, paths, context, err);
}
