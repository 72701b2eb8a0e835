/* endpoint.c - set URL, proxy, timeouts and socket options of a libcurl transfer. */
#include "kube/endpoint.h"
#include "common/memory.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    CONNECT_TIMEOUT_MS = 30000,
    /* Of the pool. A watch waits less: a request has a timeout of its own, and one that TCP gave up before it would be sent again. */
    KEEPALIVE_IDLE_S = 30,
    KEEPALIVE_INTERVAL_S = 5,
    KEEPALIVE_COUNT = 3,
    USER_TIMEOUT_MS = 30000, /* sent bytes, probes as well, that nobody acknowledges: the peer is gone */
    /* A second less than at the probe that finds it so: its timer must not come a tick too early. */
    WATCH_USER_TIMEOUT_MS = 1000 * ENDPOINT_WATCH_DEAD_S - 1000,
};

_Static_assert(ENDPOINT_WATCH_IDLE_S + ENDPOINT_WATCH_PROBE_S <= ENDPOINT_WATCH_DEAD_S,
               "a probe is out by then");
_Static_assert(3 * ENDPOINT_WATCH_DEAD_S <= 45, "the goal: see endpoint.h");

static char *url_part(CURLU *url, CURLUPart part)
{
    char *text = NULL;

    return curl_url_get(url, part, &text, CURLU_DEFAULT_PORT) == CURLUE_OK ? text : NULL;
}

static bool is_loopback(const char *host)
{
    struct in_addr v4;
    bool is_address = inet_pton(AF_INET, host, &v4) == 1; /* anyone may have a name that begins with 127. */

    return strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
           (is_address && ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET);
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
        memory_exhausted();
    e->connect_to = curl_slist_append(NULL, to);
    free(to);
    free(e->base);
    e->base = strdup(base);
    curl_free(base);
    if (!e->connect_to || !e->base)
        memory_exhausted();
    return 0;
}

/* Go lets a SOCKS proxy look up names; libcurl calls that socks5h. */
static int set_proxy(struct endpoint *e, struct err *err)
{
    const char *proxy = e->config->proxy_url ? e->config->proxy_url : e->config->environment_proxy;
    bool socks = proxy && strncmp(proxy, "socks5://", 9) == 0;
    CURLU *url = curl_url();
    char *host = NULL;

    if (!url || asprintf(&e->proxy, "%s%s", socks ? "socks5h" : "", proxy ? proxy + (socks ? 6 : 0) : "") < 0)
        memory_exhausted();
    if (!proxy) {
        curl_url_cleanup(url);
        return 0;
    }
    proxy_shown(proxy, e->proxy_shown);
    int rc = 0;
    if (curl_url_set(url, CURLUPART_URL, proxy, CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK)
        rc = err_set(err, ERR_INVALID, "proxy \"%s\": not a URL", e->proxy_shown);
    else if (strncmp(e->config->server, "http:", 5) == 0 && !is_loopback(host))
        rc = err_set(err, ERR_INVALID, "proxy \"%s\": plain http to the server is for this machine itself",
                     e->proxy_shown);
    curl_free(host);
    curl_url_cleanup(url);
    return rc;
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

int endpoint_init(struct endpoint *e, struct kube_config *config, const char *user_agent, int hurry,
                  struct err *err)
{
    CURLU *url = curl_url();

    *e = (struct endpoint){.config = config, .base = strdup(config->server), .hurry = hurry > 1 ? hurry : 1};
    e->user_agent = strdup(user_agent ? user_agent : "torchkeeper");
    if (!url || !e->base || !e->user_agent)
        memory_exhausted();
    int rc = parse(e, url, err);
    if (rc == 0)
        rc = set_proxy(e, err);
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
    free(e->proxy);
    free(e->user_agent);
    curl_slist_free_all(e->connect_to);
    *e = (struct endpoint){0};
}

/* Both are refinements: a system without them still has the idle timeout. */
static void refine(curl_socket_t fd, int user_timeout_ms)
{
    int count = KEEPALIVE_COUNT;
    unsigned timeout = (unsigned)user_timeout_ms;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout));
}

static int on_pool_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    const struct endpoint *e = ctx;

    (void)purpose;
    refine(fd, USER_TIMEOUT_MS / e->hurry);
    return CURL_SOCKOPT_OK;
}

static int on_watch_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    const struct endpoint *e = ctx;

    (void)purpose;
    refine(fd, WATCH_USER_TIMEOUT_MS / e->hurry);
    return CURL_SOCKOPT_OK;
}

/* The kernel counts whole seconds here. */
static long sooner_s(const struct endpoint *e, int s)
{
    return s > e->hurry ? s / e->hurry : 1;
}

static void setup_keepalive(const struct endpoint *e, bool watch, CURL *easy)
{
    int idle_s = watch ? ENDPOINT_WATCH_IDLE_S : KEEPALIVE_IDLE_S;
    int interval_s = watch ? ENDPOINT_WATCH_PROBE_S : KEEPALIVE_INTERVAL_S;

    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, sooner_s(e, idle_s));
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, sooner_s(e, interval_s));
    (void)curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, watch ? on_watch_socket : on_pool_socket);
    (void)curl_easy_setopt(easy, CURLOPT_SOCKOPTDATA, e);
}

/* Options that cannot fail but for lack of memory. */
static void setup_connection(const struct endpoint *e, const struct kube_http_request *req, CURL *easy)
{
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    /* One watch per connection: it cannot be held up by others, and its end is the connection's. */
    (void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, req->own_connection ? 1L : 0L);
    (void)curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, req->own_connection ? 1L : 0L);
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS / e->hurry);
    (void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)req->timeout_ms / e->hurry);
    setup_keepalive(e, req->own_connection, easy);
}

/* What the environment says was decided when the configuration was found: libcurl does not look there again. */
static CURLcode setup_proxy(const struct endpoint *e, CURL *easy)
{
    CURLcode rc = curl_easy_setopt(easy, CURLOPT_PROXY, e->proxy);

    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
    /* Always a tunnel: the proxy sees the server's name, never a request. */
    (void)curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
    return rc;
}

static CURLcode setup_request(const struct endpoint *e, const struct kube_http_request *req, CURL *easy)
{
    char *url = NULL;

    if (asprintf(&url, "%s%s", e->base, req->path) < 0)
        memory_exhausted();
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
    if (rc == CURLE_OK && e->config->socket)
        rc = curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, e->config->socket);
    if (rc == CURLE_OK && e->connect_to)
        rc = curl_easy_setopt(easy, CURLOPT_CONNECT_TO, e->connect_to);
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_USERAGENT, e->user_agent);
    return rc;
}

int endpoint_setup(const struct endpoint *e, const struct kube_http_request *req, CURL *easy, struct err *err)
{
    CURLcode rc = setup_request(e, req, easy);

    if (rc == CURLE_OK)
        rc = setup_proxy(e, easy);
    if (rc != CURLE_OK)
        return err_set(err, ERR_TRANSIENT, "%s %.120s: %s", req->method, e->base, curl_easy_strerror(rc));
    setup_connection(e, req, easy);
    return 0;
}
