/* topology_gpus.c - GPUs as the NVIDIA driver tells of them in /proc. */
#include "common/sv.h"
#include "launcher/topology_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GPUS_MAX = 256 };

#define PROC_GPUS "/proc/driver/nvidia/gpus"

struct gpu {
    char address[64], uuid[64];
};

/* The value of "Name: \t value" in a driver's information file; "" when there is none. */
static void field(const char *text, const char *name, char *out, size_t size)
{
    const char *at = strstr(text, name);

    out[0] = '\0';
    if (!at)
        return;
    at += strlen(name);
    at += strspn(at, " \t:");
    size_t n = strcspn(at, "\n");
    snprintf(out, size, "%.*s", (int)(n < size ? n : size - 1), at);
}

static int by_address(const void *a, const void *b)
{
    return strcmp(((const struct gpu *)a)->address, ((const struct gpu *)b)->address);
}

/* A container may be told of all the machine's GPUs, and has device files of its own ones. */
static bool has_device(const char *root, const char *minor)
{
    char path[2 * TOPOLOGY_PATH_BYTES];

    snprintf(path, sizeof(path), "%s/dev/nvidia%s", root, minor);
    return *minor && access(path, F_OK) == 0;
}

static int list_gpus(const char *root, struct gpu *gpus, int *n, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(TOPOLOGY_FILE_BYTES);
    char path[2 * TOPOLOGY_PATH_BYTES], minor[16];
    const struct dirent *e;

    *n = 0;
    snprintf(path, sizeof(path), "%s" PROC_GPUS, root);
    cleanup_closedir DIR *d = opendir(path);
    while (d && *n < GPUS_MAX && (e = readdir(d))) {
        struct gpu *g = &gpus[*n];
        if (e->d_name[0] == '.' || strlen(e->d_name) >= sizeof(g->address))
            continue;
        if (topology_read(root, &text, err, PROC_GPUS "/%s/information", e->d_name) < 0)
            return -1;
        field(buf_str(&text), "Device Minor", minor, sizeof(minor));
        if (!has_device(root, minor))
            continue;
        field(buf_str(&text), "GPU UUID", g->uuid, sizeof(g->uuid));
        snprintf(g->address, sizeof(g->address), "%s", e->d_name);
        (*n)++;
    }
    qsort(gpus, (size_t)*n, sizeof(*gpus), by_address);
    return 0;
}

/* One entry of CUDA_VISIBLE_DEVICES: a number, or the beginning of a UUID. */
static const struct gpu *find_gpu(const struct gpu *gpus, int n, struct sv entry)
{
    int64_t number;

    if (sv_i64(entry, 0, n - 1, &number))
        return &gpus[number];
    for (int i = 0; i < n; i++)
        if (entry.len > 4 && strncmp(gpus[i].uuid, entry.p, entry.len) == 0)
            return &gpus[i];
    return NULL;
}

/* A machine with one node often says -1. */
static int node_of(const char *root, const struct gpu *g, int *ret, struct err *err)
{
    char path[TOPOLOGY_PATH_BYTES];

    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", g->address);
    if (topology_number(root, path, -1, ret, err) < 0)
        return -1;
    *ret = *ret < 0 ? 0 : *ret;
    return 0;
}

int topology_gpu_nodes(const char *root, const char *visible, struct arena *a, int **ret, int *n,
                       struct err *err)
{
    struct gpu *all = arena_array(a, GPUS_MAX, struct gpu);
    int *nodes = arena_array(a, GPUS_MAX, int), count, shown = 0;
    struct sv rest = sv_from(visible ? visible : ""), entry;

    if (list_gpus(root, all, &count, err) < 0)
        return -1;
    for (int i = 0; !visible && i < count; i++)
        if (node_of(root, &all[i], &nodes[shown++], err) < 0)
            return -1;
    while (rest.len && shown < GPUS_MAX && sv_next(&rest, ',', &entry)) {
        if (sv_eq(sv_trim(entry), "-1")) /* CUDA's own way to end the list, and to hide all */
            break;
        const struct gpu *g = find_gpu(all, count, sv_trim(entry));
        if (!g)
            return err_set(err, ERR_INVALID, "CUDA_VISIBLE_DEVICES=%.60s: no such GPU of %d here: %.*s",
                           visible, count, (int)(entry.len < 60 ? entry.len : 60), entry.p);
        if (node_of(root, g, &nodes[shown++], err) < 0)
            return -1;
    }
    *ret = nodes;
    *n = shown;
    return 0;
}
