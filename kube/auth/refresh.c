/* refresh.c - read credentials again whose files were replaced while the process runs. */
#include "kube/auth/config.h"

#include <string.h>

enum { REREAD_MS = 60000 };

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_secret(const struct kube_secret *a, const struct kube_secret *b)
{
    return a->bytes.len == b->bytes.len &&
           (!a->bytes.len || memcmp(a->bytes.data, b->bytes.data, a->bytes.len) == 0);
}

/* Whether that is news. */
static bool take(struct kube_secret *to, struct kube_secret *from)
{
    bool news = !same_secret(to, from);

    kube_secret_release(to);
    *to = *from;
    *from = (struct kube_secret){0};
    return news;
}

/* What stands beside a file is for the time before it can be read, not for the moment in which it is replaced. */
static bool take_token(struct kube_secret *to, struct kube_secret *from)
{
    bool goes_back = from->awaited && !to->awaited && same_text(from->file, to->file);

    return !goes_back && take(to, from);
}

static bool reread(struct kube_secret *s, bool is_token)
{
    struct kube_secret fresh = {0};
    struct err ignored;

    if (!s->file)
        return false;
    if (kube_secret_from_file(&fresh, s->file, &ignored) < 0 ||
        (is_token && kube_secret_check_token(&fresh, &ignored) < 0)) {
        kube_secret_release(&fresh);
        return false;
    }
    return take(s, &fresh);
}

static bool same_identity(const struct impersonate *a, const struct impersonate *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->lines[i], b->lines[i]) != 0)
            return false;
    return true;
}

/* A credential goes to the server that it was given for, in the name that it was given for. */
static bool same_use(const struct kube_config *a, const struct kube_config *b)
{
    return same_text(a->server, b->server) && same_text(a->tls_server_name, b->tls_server_name) &&
           same_text(a->proxy_url, b->proxy_url) && same_text(a->username, b->username) &&
           a->insecure == b->insecure && !a->exec.argv == !b->exec.argv && same_identity(&a->as, &b->as);
}

/* False: the kubeconfig cannot be read now, or has become one for something else. */
static bool reread_kubeconfig(struct kube_config *c, bool *ret_news)
{
    cleanup_kube_config struct kube_config fresh = {0};
    struct err ignored;

    if (!c->source || kube_config_read_list(&fresh, c->source, c->context, &ignored) < 0 ||
        !same_use(c, &fresh))
        return false;
    *ret_news = take(&c->ca, &fresh.ca);
    if (c->exec.argv) /* the rest is the plugin's */
        return true;
    *ret_news |= take_token(&c->token, &fresh.token);
    *ret_news |= take(&c->client_cert, &fresh.client_cert);
    *ret_news |= take(&c->client_key, &fresh.client_key);
    *ret_news |= take(&c->password, &fresh.password);
    return true;
}

void kube_config_refresh(struct kube_config *c, int64_t now_ms, bool force)
{
    bool news = false;

    if (!force && now_ms - c->read_ms < REREAD_MS)
        return;
    c->read_ms = now_ms;
    if (!reread_kubeconfig(c, &news)) {
        news = reread(&c->token, true);
        news |= reread(&c->ca, false);
        news |= reread(&c->client_cert, false);
        news |= reread(&c->client_key, false);
    }
    c->generation += news;
}
