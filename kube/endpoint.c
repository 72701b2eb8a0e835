/* endpoint.c - URL, headers, TLS and socket options of a transfer. */
#include "kube/endpoint.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    CONNECT_TIMEOUT_MS = 30000,
    KEEPALIVE_IDLE_S = 30,
    KEEPALIVE_INTERVAL_S = 5,
    KEEPALIVE_COUNT = 3,
    USER_TIMEOUT_MS = 30000, /* sent bytes that nobody acknowledges: the peer is gone */
};

static char *url_part(CURLU *url, CURLUPart part)
{
    char *text = NULL;

    return curl_url_get(url, part, &text, CURLU_DEFAULT_PORT) == CURLUE_OK ? text : NULL;
}

static bool is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 || strncmp(host, "127.", 4) == 0;
}

/* The certificate's name differs from the address: connect to the one, ask for the other. */
static int redirect(struct endpoint *e, CURLU *url, const char *host, const char *port, struct err *err)
{
    char *base = NULL;
    char *to = NULL;

    if (curl_url_set(url, CURLUPART_HOST, e->config->tls_server_name, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_URL, &base, 0) != CURLUE_OK)
        return err_set(err, ERR_INVALID, "tls-server-name \"%.80s\": expected a host name",
                       e->config->tls_server_name);
    if (asprintf(&to, "::%s:%s", host, port) < 0 || asprintf(&e->host_header, "Host: %s:%s", host, port) < 0)
        abort();
    e->connect_to = curl_slist_append(NULL, to);
    free(to);
    free(e->base);
    e->base = strdup(base);
    curl_free(base);
    if (!e->connect_to || !e->base)
        abort();
    return 0;
}

static int parse(struct endpoint *e, CURLU *url, struct err *err)
{
    const char *server = e->config->server;

    if (curl_url_set(url, CURLUPART_URL, server, 0) != CURLUE_OK)
        return err_set(err, ERR_INVALID, "server \"%.120s\": not a URL", server);
    char *scheme = url_part(url, CURLUPART_SCHEME);
    char *host = url_part(url, CURLUPART_HOST);
    char *port = url_part(url, CURLUPART_PORT);
    int rc = 0;

    if (!scheme || !host || !port)
        rc = err_set(err, ERR_INVALID, "server \"%.120s\": expected https://host:port", server);
    else if (strcmp(scheme, "https") != 0 && !is_loopback(host))
        rc = err_set(err, ERR_INVALID, "server \"%.120s\": plain http only to this machine itself", server);
    else if (e->config->tls_server_name)
        rc = redirect(e, url, host, port, err);
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    return rc;
}

int endpoint_init(struct endpoint *e, struct kube_config *config, const char *user_agent, struct err *err)
{
    CURLU *url = curl_url();

    *e = (struct endpoint){.config = config, .base = strdup(config->server)};
    e->user_agent = strdup(user_agent ? user_agent : "torchkeeper");
    if (!url || !e->base || !e->user_agent)
        abort();
    int rc = parse(e, url, err);
    curl_url_cleanup(url);
    /* curl_url_get ends an empty path with '/'; requests begin with one. */
    size_t len = strlen(e->base);
    while (len && e->base[len - 1] == '/')
        e->base[--len] = '\0';
    if (rc < 0)
        endpoint_release(e);
    return rc;
}

void endpoint_release(struct endpoint *e)
{
    free(e->base);
    free(e->host_header);
    free(e->user_agent);
    curl_slist_free_all(e->connect_to);
    *e = (struct endpoint){0};
}

static int on_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    int count = KEEPALIVE_COUNT;
    unsigned timeout = USER_TIMEOUT_MS;

    (void)ctx;
    (void)purpose;
    /* Both are refinements: a system without them still has the idle timeout. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout));
    return CURL_SOCKOPT_OK;
}

static struct curl_blob blob(const struct kube_secret *s)
{
    return (struct curl_blob){s->bytes.data, s->bytes.len, CURL_BLOB_COPY};
}

static CURLcode setup_tls(const struct kube_config *c, CURL *easy)
{
    struct curl_blob ca = blob(&c->ca);
    struct curl_blob cert = blob(&c->client_cert);
    struct curl_blob key = blob(&c->client_key);
    CURLcode rc = curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);

    if (rc == CURLE_OK && ca.len) {
        /* This CA and no other: libcurl would add the system's folder of authorities. */
        (void)curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
        (void)curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
        rc = curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &ca);
    }
    if (rc == CURLE_OK && cert.len)
        rc = curl_easy_setopt(easy, CURLOPT_SSLCERT_BLOB, &cert);
    if (rc == CURLE_OK && key.len)
        rc = curl_easy_setopt(easy, CURLOPT_SSLKEY_BLOB, &key);
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, c->insecure ? 0L : 1L);
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, c->insecure ? 0L : 2L);
    return rc;
}

/* Options that cannot fail but for lack of memory. */
static void setup_connection(const struct http_request *req, CURL *easy)
{
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_PROXY, ""); /* not what the environment says */
    (void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    /* One watch per connection: it cannot be held up by others, and its end is the connection's. */
    (void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, req->own_connection ? 1L : 0L);
    (void)curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, req->own_connection ? 1L : 0L);
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    (void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)req->timeout_ms);
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_IDLE_S);
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_INTERVAL_S);
    (void)curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
}

static void add_header(struct curl_slist **list, const char *text)
{
    struct curl_slist *more = curl_slist_append(*list, text);

    if (!more)
        abort();
    *list = more;
}

static struct curl_slist *make_headers(const struct endpoint *e, const struct http_request *req)
{
    const struct buf *token = &e->config->token.bytes;
    struct curl_slist *list = NULL;
    char *line = NULL;

    add_header(&list, "Accept: application/json");
    add_header(&list, "Expect:");
    if (e->host_header)
        add_header(&list, e->host_header);
    if (token->len) {
        if (asprintf(&line, "Authorization: Bearer %s", token->data) < 0)
            abort();
        add_header(&list, line);
        explicit_bzero(line, strlen(line));
        free(line);
    }
    if (req->content_type) {
        if (asprintf(&line, "Content-Type: %s", req->content_type) < 0)
            abort();
        add_header(&list, line);
        free(line);
    }
    return list;
}

static CURLcode setup_request(const struct endpoint *e, const struct http_request *req, CURL *easy)
{
    char *url = NULL;

    if (asprintf(&url, "%s%s", e->base, req->path) < 0)
        abort();
    CURLcode rc = curl_easy_setopt(easy, CURLOPT_URL, url);
    free(url);
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR,
                              strncmp(e->base, "https:", 6) == 0 ? "https" : "http");
    if (rc == CURLE_OK && req->body.len) {
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)req->body.len);
        rc = curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, req->body.p);
    }
    if (rc == CURLE_OK && (req->body.len || strcmp(req->method, "GET") != 0))
        rc = curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, req->method);
    if (rc == CURLE_OK && e->connect_to)
        rc = curl_easy_setopt(easy, CURLOPT_CONNECT_TO, e->connect_to);
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_USERAGENT, e->user_agent);
    return rc;
}

int endpoint_setup(const struct endpoint *e, const struct http_request *req, CURL *easy,
                   struct curl_slist **ret_headers, struct err *err)
{
    CURLcode rc = setup_request(e, req, easy);

    if (rc == CURLE_OK)
        rc = setup_tls(e->config, easy);
    if (rc != CURLE_OK)
        return err_set(err, ERR_TRANSIENT, "%s %.120s: %s", req->method, e->base, curl_easy_strerror(rc));
    setup_connection(req, easy);
    *ret_headers = make_headers(e, req);
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, *ret_headers);
    return 0;
}
