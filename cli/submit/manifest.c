/* manifest.c - build the job and the ConfigMap of a submission. */
#include "cli/submit/manifest.h"

#include "cli/names.h"
#include "common/memory.h"
#include "common/sv.h"
#include "operator/api/trainjob.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODE = 0555 };

static void add_text(cJSON *o, const char *key, const char *value)
{
    cJSON_AddStringToObject(o, key, value);
}

static cJSON *add_item(cJSON *list)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddItemToArray(list, o);
    return o;
}

/* Keys of a ConfigMap have no slashes and few other characters; the volume gives the files their own names. */
static const char *key_of(const struct code_file *f, int i, char buf[static 32])
{
    if (strlen(f->path) <= 128 && names_is_key(f->path))
        return f->path;
    snprintf(buf, 32, ".file-%d", i); /* the names of a folder's files do not begin with a dot */
    return buf;
}

static void add_names(cJSON *o, const char *api_version, const char *kind, const char *name, const char *ns)
{
    add_text(o, "apiVersion", api_version);
    add_text(o, "kind", kind);
    cJSON *meta = cJSON_AddObjectToObject(o, "metadata");
    add_text(meta, "name", name);
    if (ns)
        add_text(meta, "namespace", ns);
}

static void code_name(const struct submission *s, char ret[static 128])
{
    snprintf(ret, 128, "%.100s-code%.20s", s->name, s->suffix);
}

cJSON *manifest_code(const struct submission *s, const char *owner_uid)
{
    cJSON *o = cJSON_CreateObject();
    char name[128], key[32];

    code_name(s, name);
    add_names(o, "v1", "ConfigMap", name, s->ns);
    if (owner_uid) {
        cJSON *ref = add_item(cJSON_AddArrayToObject(json_child(o, "metadata"), "ownerReferences"));
        add_text(ref, "apiVersion", TRAINJOB_API_VERSION);
        add_text(ref, "kind", TRAINJOB_KIND);
        add_text(ref, "name", s->name);
        add_text(ref, "uid", owner_uid);
        cJSON_AddTrueToObject(o, "immutable"); /* a printed one is applied again when the code has changed */
    }
    for (int i = 0; i < s->code->n; i++) {
        const struct code_file *f = &s->code->files[i];
        const char *list = f->binary ? "binaryData" : "data";
        cJSON *data = json_child(o, list);
        add_text(data ? data : cJSON_AddObjectToObject(o, list), key_of(f, i, key), f->content);
    }
    return o;
}

/* A volume and its mount. Returns the source of the volume, to be filled in. */
static cJSON *add_volume(cJSON *volumes, cJSON *mounts, const char *name, const char *path,
                         const char *source)
{
    cJSON *mount = add_item(mounts), *volume = add_item(volumes);

    add_text(mount, "name", name);
    add_text(mount, "mountPath", path);
    add_text(volume, "name", name);
    return cJSON_AddObjectToObject(volume, source);
}

static void add_volumes(const struct submission *s, cJSON *pod, cJSON *container)
{
    cJSON *volumes = cJSON_AddArrayToObject(pod, "volumes");
    cJSON *mounts = cJSON_AddArrayToObject(container, "volumeMounts");
    char name[128], key[32];

    cJSON *map = add_volume(volumes, mounts, "code", MANIFEST_CODE_FOLDER, "configMap");
    cJSON_AddBoolToObject(mounts->child, "readOnly", true);
    code_name(s, name);
    add_text(map, "name", name);
    cJSON_AddNumberToObject(map, "defaultMode", MODE);
    cJSON *items = cJSON_AddArrayToObject(map, "items");
    for (int i = 0; i < s->code->n; i++) {
        cJSON *item = add_item(items);
        add_text(item, "key", key_of(&s->code->files[i], i, key));
        add_text(item, "path", s->code->files[i].path);
    }
    for (int i = 0; i < s->n_claims; i++) {
        snprintf(name, sizeof(name), "claim-%d", i);
        add_text(add_volume(volumes, mounts, name, s->claims[i].value, "persistentVolumeClaim"), "claimName",
                 s->claims[i].name);
    }
    /* Workers of a DataLoader fill the 64 MiB that a container has without it. */
    add_text(add_volume(volumes, mounts, "dshm", MANIFEST_SHARED_MEMORY, "emptyDir"), "medium", "Memory");
}

static void add_resources(const struct submission *s, cJSON *container)
{
    if (!s->cpu && !s->memory && !s->gpus)
        return;
    cJSON *limits = cJSON_AddObjectToObject(cJSON_AddObjectToObject(container, "resources"), "limits");
    if (s->cpu)
        add_text(limits, "cpu", s->cpu);
    if (s->memory)
        add_text(limits, "memory", s->memory);
    if (s->gpus)
        cJSON_AddNumberToObject(limits, "nvidia.com/gpu", (double)s->gpus);
}

/* A text that Kubernetes expands to this one: $$ becomes a $, and no $(NAME) is left. */
static cJSON *unexpanded(const char *text)
{
    char *escaped = memory_must(malloc(2 * strlen(text) + 1)), *to = escaped;

    for (; *text; text++) {
        *to++ = *text;
        if (*text == '$')
            *to++ = '$';
    }
    *to = '\0';
    cJSON *ret = cJSON_CreateString(escaped);
    free(escaped);
    return ret;
}

static void add_env(const struct submission *s, cJSON *container)
{
    cJSON *env = s->n_env ? cJSON_AddArrayToObject(container, "env") : NULL;

    for (int i = 0; i < s->n_env; i++) {
        cJSON *e = add_item(env);
        add_text(e, "name", s->env[i].name);
        if (!s->env[i].key) {
            cJSON_AddItemToObject(e, "value", unexpanded(s->env[i].value));
            continue;
        }
        cJSON *from = cJSON_AddObjectToObject(cJSON_AddObjectToObject(e, "valueFrom"), "secretKeyRef");
        add_text(from, "name", s->env[i].value);
        add_text(from, "key", s->env[i].key);
    }
}

static void add_placement(const struct submission *s, cJSON *pod)
{
    cJSON *selector = s->n_selectors ? cJSON_AddObjectToObject(pod, "nodeSelector") : NULL;

    for (int i = 0; i < s->n_selectors; i++)
        add_text(selector, s->selectors[i].name, s->selectors[i].value);
    if (s->pull_secret)
        add_text(add_item(cJSON_AddArrayToObject(pod, "imagePullSecrets")), "name", s->pull_secret);
}

static void add_container(const struct submission *s, cJSON *pod)
{
    cJSON *c = add_item(cJSON_AddArrayToObject(pod, "containers"));
    char program[CODE_PATH_BYTES + sizeof(MANIFEST_CODE_FOLDER) + 2];

    add_text(c, "name", "pytorch");
    add_text(c, "image", s->image);
    cJSON *args = cJSON_AddArrayToObject(c, "args");
    snprintf(program, sizeof(program), MANIFEST_CODE_FOLDER "/%s", s->program);
    cJSON_AddItemToArray(args, unexpanded(program));
    for (int i = 0; i < s->n_args; i++)
        cJSON_AddItemToArray(args, unexpanded(s->args[i]));
    add_env(s, c);
    add_resources(s, c);
    add_volumes(s, pod, c);
}

static void add_tensorboard(const struct submission *s, cJSON *spec)
{
    cJSON *tensorboard = cJSON_AddObjectToObject(spec, "tensorboardSpec");
    cJSON *logs = cJSON_AddObjectToObject(tensorboard, "logDir");
    cJSON *claim = add_item(cJSON_AddArrayToObject(logs, "pvc"));

    add_text(claim, "name", s->tensorboard.name);
    if (s->tensorboard.value[0])
        cJSON_AddItemToArray(cJSON_AddArrayToObject(claim, "subPath"),
                             cJSON_CreateString(s->tensorboard.value));
}

cJSON *manifest_job(const struct submission *s)
{
    const bool image = strcmp(s->launcher, "Image") == 0;
    cJSON *o = cJSON_CreateObject();

    add_names(o, TRAINJOB_API_VERSION, TRAINJOB_KIND, s->name, s->ns);
    cJSON *spec = cJSON_AddObjectToObject(o, "spec");
    cJSON *torchrun = cJSON_AddObjectToObject(spec, "torchrunConfig");
    cJSON_AddBoolToObject(torchrun, "enabled", true);
    add_text(torchrun, "launcher", s->launcher);
    cJSON_AddNumberToObject(torchrun, "procPerNode", (double)s->procs);
    cJSON_AddNumberToObject(torchrun, "maxRestarts", (double)s->max_restarts);
    /* PyTorch's launcher takes every program for a Python script. */
    if (image && !sv_ends(sv_from(s->program), ".py"))
        cJSON_AddItemToArray(cJSON_AddArrayToObject(torchrun, "extraOptions"),
                             cJSON_CreateString("--no-python"));
    if (s->tensorboard.name)
        add_tensorboard(s, spec);
    /* What /scale, and so a PodDisruptionBudget, takes for the number of pods. */
    cJSON *elastic = cJSON_AddObjectToObject(spec, "elastic");
    cJSON_AddBoolToObject(elastic, "enabled", false);
    cJSON_AddNumberToObject(elastic, "expectedReplicas", (double)s->nodes);
    if (s->progress_timeout_s)
        cJSON_AddNumberToObject(cJSON_AddObjectToObject(spec, "runPolicy"), "progressTimeoutSeconds",
                                (double)s->progress_timeout_s);
    cJSON *replica = add_item(cJSON_AddArrayToObject(spec, "replicaSpecs"));
    add_text(replica, "type", "node");
    cJSON_AddNumberToObject(replica, "replicas", (double)s->nodes);
    add_text(replica, "restartPolicy", "ExitCode");
    cJSON *template = cJSON_AddObjectToObject(replica, "template");
    cJSON *pod = cJSON_AddObjectToObject(template, "spec");
    add_placement(s, pod);
    add_container(s, pod);
    return o;
}

void manifest_name(const char *path, char ret[static MANIFEST_NAME_MAX + 1])
{
    size_t end = strlen(path), n = 0;

    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    const char *dot = memrchr(path + begin, '.', end - begin);
    if (dot && dot > path + begin) /* without its ending */
        end = (size_t)(dot - path);
    for (size_t i = begin; i < end && n < MANIFEST_NAME_MAX; i++) {
        const unsigned char c = (unsigned char)path[i];
        const bool is_part = c < 0x80 && isalnum(c);
        if (is_part && !n && isdigit(c))
            n = (size_t)snprintf(ret, MANIFEST_NAME_MAX, "job-");
        if (is_part || (n && ret[n - 1] != '-'))
            ret[n++] = is_part ? (char)tolower(c) : '-';
    }
    while (n && ret[n - 1] == '-')
        n--;
    ret[n] = '\0';
    if (!n)
        snprintf(ret, MANIFEST_NAME_MAX, "job");
}
