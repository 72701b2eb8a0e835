/* endpoint.c - set URL, timeouts, socket options, CA and headers of a libcurl transfer. */
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
    /* For connections of the pool. Those of watches have shorter times. A shorter time here would make libcurl send a
     * request twice: it retries when a reused connection dies before the answer. */
    KEEPALIVE_IDLE_S = 30,
    KEEPALIVE_INTERVAL_S = 5,
    KEEPALIVE_COUNT = 3,
    USER_TIMEOUT_MS = 30000, /* the peer acknowledged no byte and no probe for this long: it is gone */
    /* A second less than DEAD_S, so that the probe at DEAD_S finds the time exceeded. */
    WATCH_USER_TIMEOUT_MS = 1000 * ENDPOINT_WATCH_DEAD_S - 1000,
};

_Static_assert(ENDPOINT_WATCH_IDLE_S + ENDPOINT_WATCH_PROBE_S <= ENDPOINT_WATCH_DEAD_S,
               "a probe has been sent by then");
_Static_assert(3 * ENDPOINT_WATCH_DEAD_S <= 45, "the goal: see endpoint.h");

static char *url_part(CURLU *url, CURLUPart part)
{
    char *text = NULL;

    return curl_url_get(url, part, &text, CURLU_DEFAULT_PORT) == CURLUE_OK ? text : NULL;
}

static bool is_loopback(const char *host)
{
    struct in_addr v4;
    bool is_address = inet_pton(AF_INET, host, &v4) == 1; /* a host name may also begin with "127." */

    return strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
           (is_address && ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET);
}

static int check(const char *server, CURLU *url, struct err *err)
{
    const CURLUcode parsed = curl_url_set(url, CURLUPART_URL, server, CURLU_DISALLOW_USER);
    char *scheme = url_part(url, CURLUPART_SCHEME);
    char *host = url_part(url, CURLUPART_HOST);
    const bool is_tls = scheme && strcmp(scheme, "https") == 0;
    int rc = 0;

    if (parsed != CURLUE_OK && strchr(server, '@')) /* not quoted: messages are logged */
        rc = err_set(err, ERR_INVALID,
                     "server: expected an address without user and password: use a token, or kubectl proxy");
    else if (parsed != CURLUE_OK || !host || strpbrk(server, "?#") ||
             (!is_tls && (!scheme || strcmp(scheme, "http") != 0)))
        rc = err_set(err, ERR_INVALID,
                     "server \"%.120s\": expected https://HOST:PORT, or on this machine "
                     "http://127.0.0.1:PORT or unix:SOCKET",
                     server);
    else if (!is_tls && !is_loopback(host))
        rc = err_set(err, ERR_INVALID, "server \"%.120s\": plain http is allowed only to this machine",
                     server);
    curl_free(scheme);
    curl_free(host);
    return rc;
}

int endpoint_check(const char *server, struct err *err)
{
    CURLU *url = memory_must(curl_url());
    const int rc = check(server, url, err);

    curl_url_cleanup(url);
    return rc;
}

/* Both options are optional: a system without them still has the idle timeout. */
static void refine(curl_socket_t fd, int user_timeout_ms)
{
    int count = KEEPALIVE_COUNT;
    unsigned timeout = (unsigned)user_timeout_ms;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout));
}

static int on_pool_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    (void)ctx, (void)purpose;
    refine(fd, USER_TIMEOUT_MS);
    return CURL_SOCKOPT_OK;
}

static int on_watch_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    (void)ctx, (void)purpose;
    refine(fd, WATCH_USER_TIMEOUT_MS);
    return CURL_SOCKOPT_OK;
}

static void setup_keepalive(bool watch, CURL *easy)
{
    long idle_s = watch ? ENDPOINT_WATCH_IDLE_S : KEEPALIVE_IDLE_S;
    long interval_s = watch ? ENDPOINT_WATCH_PROBE_S : KEEPALIVE_INTERVAL_S;

    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, idle_s);
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, interval_s);
    (void)curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, watch ? on_watch_socket : on_pool_socket);
}

/* Options that fail only for lack of memory. */
static void setup_connection(const struct kube_http_request *req, CURL *easy)
{
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    /* HTTP/1.1 gives each watch its own connection: others cannot delay it, and it ends with the connection. */
    (void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, req->own_connection ? 1L : 0L);
    (void)curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, req->own_connection ? 1L : 0L);
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    (void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)req->timeout_ms);
    setup_keepalive(req->own_connection, easy);
}

static CURLcode setup_request(const struct kube_config *c, const char *user_agent,
                              const struct kube_http_request *req, CURL *easy)
{
    char *url = NULL;

    if (asprintf(&url, "%s%s", c->server, req->path) < 0)
        memory_exhausted();
    CURLcode rc = curl_easy_setopt(easy, CURLOPT_URL, url);
    free(url);
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR,
                              strncasecmp(c->server, "https:", 6) == 0 ? "https" : "http");
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_PROXY, ""); /* otherwise libcurl reads the environment */
    if (rc == CURLE_OK && req->body.len) {
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)req->body.len);
        rc = curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, req->body.p);
    }
    if (rc == CURLE_OK && (req->body.len || strcmp(req->method, "GET") != 0))
        rc = curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, req->method);
    if (rc == CURLE_OK && c->socket)
        rc = curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, c->socket);
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_USERAGENT, user_agent);
    return rc;
}

int endpoint_setup(const struct kube_config *c, const char *user_agent, const struct kube_http_request *req,
                   CURL *easy, struct err *err)
{
    const CURLcode rc = setup_request(c, user_agent, req, easy);

    if (rc != CURLE_OK)
        return err_set(err, ERR_TRANSIENT, "%s %.120s: %s", req->method, c->server, curl_easy_strerror(rc));
    setup_connection(req, easy);
    return 0;
}

static CURLcode setup_tls(const struct kube_config *c, CURL *easy)
{
    struct curl_blob ca = {c->ca.bytes.data, c->ca.bytes.len, CURL_BLOB_COPY};
    CURLcode rc = curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);

    if (rc == CURLE_OK && ca.len) {
        /* Only this CA: by default libcurl adds the system's folder of CA certificates. */
        (void)curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
        (void)curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
        rc = curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &ca);
    }
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    return rc;
}

/* The header may contain a secret: wipe our copy. */
static void add_header(struct curl_slist **list, const char *name, const char *value)
{
    char *line = NULL;

    if (asprintf(&line, "%s%s", name, value) < 0)
        memory_exhausted();
    *list = memory_must(curl_slist_append(*list, line));
    explicit_bzero(line, strlen(line));
    free(line);
}

int endpoint_sign(const struct kube_config *c, const char *content_type, CURL *easy,
                  struct curl_slist **ret_headers, struct err *err)
{
    const CURLcode rc = setup_tls(c, easy);

    if (rc != CURLE_OK)
        return err_set(err, ERR_TRANSIENT, "%.120s: %s", c->server, curl_easy_strerror(rc));
    add_header(ret_headers, "Accept: ", "application/json");
    add_header(ret_headers, "Expect:", "");
    if (c->token.bytes.len)
        add_header(ret_headers, "Authorization: Bearer ", c->token.bytes.data);
    if (content_type)
        add_header(ret_headers, "Content-Type: ", content_type);
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, *ret_headers);
    return 0;
}
