/* config.c - find the API server, and read its CA and our token from files that may change. */
#include "kube/auth/config.h"

#include "common/fsutil.h"
#include "common/memory.h"
#include "common/sv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096, NAMESPACE_MAX_BYTES = 256, REREAD_MS = 60000, SECRET_MAX_BYTES = 1 << 20 };

static void wipe(struct buf *b)
{
    if (b->data)
        explicit_bzero(b->data, b->cap);
    buf_release(b);
}

#define cleanup_wipe __attribute__((cleanup(wipe)))

static void credential_release(struct kube_credential *s)
{
    wipe(&s->bytes);
    free(s->file);
    *s = (struct kube_credential){0};
}

int kube_credential_from_file(struct kube_credential *s, const char *path, struct err *err)
{
    cleanup_wipe struct buf bytes = BUF_INIT(SECRET_MAX_BYTES);

    if (fs_read(path, &bytes, err) < 0)
        return -1;
    if (!bytes.len)
        return err_set(err, ERR_INVALID, "%s: empty", path);
    credential_release(s);
    *s = (struct kube_credential){bytes, memory_strdup(path)};
    bytes = (struct buf){0};
    return 0;
}

/* Remove trailing white space, and refuse bytes that are not printable, which could end an HTTP header. */
static int check_token(struct kube_credential *s, struct err *err)
{
    struct buf *b = &s->bytes;

    while (b->len && strchr(" \t\r\n", b->data[b->len - 1]))
        b->data[--b->len] = '\0';
    if (!b->len)
        return err_set(err, ERR_INVALID, "token: empty");
    for (size_t i = 0; i < b->len; i++)
        if (b->data[i] <= ' ' || b->data[i] > '~')
            return err_set(err, ERR_INVALID, "token: byte %zu is not a printable character", i);
    return 0;
}

void kube_config_release(struct kube_config *c)
{
    free(c->server);
    free(c->socket);
    free(c->namespace_name);
    credential_release(&c->ca);
    credential_release(&c->token);
    *c = (struct kube_config){0};
}

static char *server_url(const char *host, const char *port)
{
    char *url = NULL;
    bool v6 = strchr(host, ':') != NULL;

    if (asprintf(&url, "https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port) < 0)
        memory_exhausted();
    return url;
}

static int read_token(struct kube_credential *s, const char *path, struct err *err)
{
    if (kube_credential_from_file(s, path, err) < 0)
        return -1;
    return check_token(s, err) < 0 ? err_wrap(err, "%s", path) : 0;
}

static int read_account(struct kube_config *c, const char *dir, struct err *err)
{
    char path[PATH_BYTES];
    cleanup_buf struct buf ns = BUF_INIT(NAMESPACE_MAX_BYTES);

    snprintf(path, sizeof(path), "%s/token", dir);
    if (read_token(&c->token, path, err) < 0)
        return -1;
    snprintf(path, sizeof(path), "%s/ca.crt", dir);
    if (kube_credential_from_file(&c->ca, path, err) < 0)
        return -1;
    snprintf(path, sizeof(path), "%s/namespace", dir);
    if (fs_read(path, &ns, err) < 0)
        return -1;
    struct sv name = sv_trim((struct sv){buf_str(&ns), ns.len});
    c->namespace_name = memory_must(name.len ? strndup(name.p, name.len) : strdup("default"));
    return 0;
}

int kube_config_in_cluster(struct kube_config *c, const char *host, const char *port, const char *dir,
                           struct err *err)
{
    cleanup_kube_config struct kube_config fresh = {0};
    int64_t number;

    if (!host || !*host || !port || !*port)
        return err_set(err, ERR_NOT_FOUND,
                       "not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
    if (strlen(host) > 253 || strpbrk(host, "/@?#[] \t\r\n"))
        return err_set(err, ERR_INVALID, "KUBERNETES_SERVICE_HOST: expected a host name or address");
    if (!sv_i64(sv_from(port), 1, 65535, &number))
        return err_set(err, ERR_INVALID, "KUBERNETES_SERVICE_PORT: expected 1..65535, got \"%.20s\"", port);
    fresh.server = server_url(host, port);
    if (read_account(&fresh, dir, err) < 0)
        return err_wrap(err, "service account");
    *c = fresh;
    fresh = (struct kube_config){0};
    return 0;
}

static int read_given(struct kube_config *c, const struct kube_config_given *g, struct err *err)
{
    cleanup_kube_config struct kube_config fresh = {.namespace_name = memory_strdup("default")};
    const bool is_socket = strncmp(g->server, "unix:", 5) == 0 && g->server[5];
    size_t len = strlen(g->server);

    while (len && g->server[len - 1] == '/')
        len--;
    fresh.server = is_socket ? memory_strdup("http://localhost") : memory_must(strndup(g->server, len));
    fresh.socket = is_socket ? memory_strdup(g->server + 5) : NULL;
    if ((g->ca_file && kube_credential_from_file(&fresh.ca, g->ca_file, err) < 0) ||
        (g->token_file && read_token(&fresh.token, g->token_file, err) < 0))
        return -1;
    *c = fresh;
    fresh = (struct kube_config){0};
    return 0;
}

int kube_config_find(struct kube_config *c, const struct kube_config_given *given, struct err *err)
{
    if (given->server)
        return read_given(c, given, err);
    if (given->ca_file || given->token_file)
        return err_set(err, ERR_INVALID, "--%s: needs --server, too",
                       given->ca_file ? "ca-file" : "token-file");
    if (kube_config_in_cluster(c, getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT"),
                               KUBE_SERVICE_ACCOUNT_DIR, err) < 0)
        return err->kind == ERR_NOT_FOUND ? err_wrap(err, "no --server") : -1;
    return 0;
}

static bool same_secret(const struct kube_credential *a, const struct kube_credential *b)
{
    return a->bytes.len == b->bytes.len &&
           (!a->bytes.len || memcmp(a->bytes.data, b->bytes.data, a->bytes.len) == 0);
}

/* Returns whether the bytes changed. */
static bool reread(struct kube_credential *s,
                   int (*read)(struct kube_credential *s, const char *path, struct err *err))
{
    struct kube_credential fresh = {0};
    struct err ignored;

    if (!s->file || read(&fresh, s->file, &ignored) < 0 || same_secret(s, &fresh)) {
        credential_release(&fresh);
        return false;
    }
    credential_release(s);
    *s = fresh;
    return true;
}

static void read_again(struct kube_config *c, int64_t now_ms)
{
    c->read_ms = now_ms;
    const bool token = reread(&c->token, read_token), ca = reread(&c->ca, kube_credential_from_file);
    c->generation += token || ca;
}

void kube_config_refresh(struct kube_config *c, int64_t now_ms)
{
    if (now_ms - c->read_ms >= REREAD_MS)
        read_again(c, now_ms);
}

bool kube_config_renewed(struct kube_config *c, uint64_t generation, int64_t now_ms)
{
    if (c->generation == generation)
        read_again(c, now_ms);
    return c->generation != generation;
}
