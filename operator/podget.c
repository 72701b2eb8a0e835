/* podget.c - a bounded GET over libcurl. */
#include "operator/podget.h"

#include "common/memory.h"

#include <curl/curl.h>
#include <string.h>

/* Called inside libcurl. A result other than `n` ends the exchange. */
static size_t on_body(char *p, size_t size, size_t n, void *ctx)
{
    struct podget *g = ctx;

    n *= size;
    if (n > PODGET_BYTES - g->len)
        return 0;
    memcpy(g->body + g->len, p, n);
    g->len += n;
    return n;
}

static size_t on_header(char *p, size_t size, size_t n, void *ctx)
{
    struct podget *g = ctx;

    (void)p;
    n *= size;
    g->header_bytes += n;
    return g->header_bytes > PODGET_HEADER_BYTES ? 0 : n;
}

static void stop(struct podget *g)
{
    if (!g->running)
        return;
    g->running = false;
    (void)curl_multi_remove_handle(kube_loop_curl(g->loop), g->easy);
    kube_loop_connections(g->loop, -1);
}

static void on_done(void *ctx, int curl_code)
{
    struct podget *g = ctx;
    struct sv body = {g->body, g->len};
    long status = 0;

    (void)curl_easy_getinfo(g->easy, CURLINFO_RESPONSE_CODE, &status);
    stop(g);
    g->done(g->ctx, curl_code == CURLE_OK && status == 200 ? &body : NULL);
}

static CURL *easy_new(struct podget *g)
{
    CURL *e = curl_easy_init();

    if (!e || curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http") != CURLE_OK ||
        curl_easy_setopt(e, CURLOPT_PROXY, "") != CURLE_OK ||
        curl_easy_setopt(e, CURLOPT_USERAGENT, "ptj-operator") != CURLE_OK)
        memory_exhausted();
    (void)curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(e, CURLOPT_FRESH_CONNECT, 1L);
    (void)curl_easy_setopt(e, CURLOPT_FORBID_REUSE, 1L);
    (void)curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)PODGET_TIMEOUT_MS);
    (void)curl_easy_setopt(e, CURLOPT_MAXFILESIZE, (long)PODGET_BYTES);
    (void)curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(e, CURLOPT_WRITEDATA, g);
    (void)curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(e, CURLOPT_HEADERDATA, g);
    (void)curl_easy_setopt(e, CURLOPT_PRIVATE, &g->transfer);
    return e;
}

bool podget_start(struct podget *g, const char *url)
{
    if (!g->easy)
        g->easy = easy_new(g);
    g->transfer = (struct kube_loop_transfer){on_done, g};
    g->len = g->header_bytes = 0;
    if (curl_easy_setopt(g->easy, CURLOPT_URL, url) != CURLE_OK ||
        curl_multi_add_handle(kube_loop_curl(g->loop), g->easy) != CURLM_OK)
        return false;
    g->running = true;
    kube_loop_connections(g->loop, 1);
    return true;
}

void podget_release(struct podget *g)
{
    stop(g);
    if (g->easy)
        curl_easy_cleanup(g->easy);
    g->easy = NULL;
}
