/* endpoint_sign.c - set headers, client certificate and trusted CAs of a libcurl transfer. */
#include "common/memory.h"
#include "kube/auth/base64.h"
#include "kube/endpoint.h"

#include <stdlib.h>
#include <string.h>

static struct curl_blob blob(const struct kube_secret *s)
{
    return (struct curl_blob){s->bytes.data, s->bytes.len, CURL_BLOB_COPY};
}

/* An https proxy shows a certificate of the same authority, as for client-go. */
static CURLcode setup_proxy_tls(const struct kube_config *c, CURL *easy)
{
    struct curl_blob ca = blob(&c->ca);
    CURLcode rc = curl_easy_setopt(easy, CURLOPT_PROXY_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);

    if (rc == CURLE_OK && ca.len) {
        (void)curl_easy_setopt(easy, CURLOPT_PROXY_CAINFO, NULL);
        (void)curl_easy_setopt(easy, CURLOPT_PROXY_CAPATH, NULL);
        rc = curl_easy_setopt(easy, CURLOPT_PROXY_CAINFO_BLOB, &ca);
    }
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_PROXY_SSL_VERIFYPEER, c->insecure ? 0L : 1L);
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(easy, CURLOPT_PROXY_SSL_VERIFYHOST, c->insecure ? 0L : 2L);
    return rc;
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

static void add_header(struct curl_slist **list, const char *text)
{
    struct curl_slist *more = curl_slist_append(*list, text);

    if (!more)
        memory_exhausted();
    *list = more;
}

/* The text is a secret: no copy stays but libcurl's. */
static void add_secret_header(struct curl_slist **list, char *line)
{
    add_header(list, line);
    explicit_bzero(line, strlen(line));
    free(line);
}

static void add_basic(struct curl_slist **list, const struct kube_config *c)
{
    size_t len = strlen(c->username) + c->password.bytes.len + 1;
    struct buf pair = BUF_INIT(len);
    struct buf coded = BUF_INIT(len / 3 * 4 + 4);
    struct err never;
    char *line = NULL;

    if (buf_printf(&pair, &never, "%s:%s", c->username, buf_str(&c->password.bytes)) < 0 ||
        base64_encode(pair.data, pair.len, &coded, &never) < 0)
        abort(); /* both have room for it */
    if (asprintf(&line, "Authorization: Basic %s", coded.data) < 0)
        memory_exhausted();
    add_secret_header(list, line);
    explicit_bzero(pair.data, pair.cap);
    explicit_bzero(coded.data, coded.cap);
    buf_release(&pair);
    buf_release(&coded);
}

static struct curl_slist *make_headers(const struct endpoint *e, const char *content_type)
{
    const struct kube_config *c = e->config;
    struct curl_slist *list = NULL;
    char *line = NULL;

    add_header(&list, "Accept: application/json");
    add_header(&list, "Expect:");
    if (e->host_header)
        add_header(&list, e->host_header);
    if (c->token.bytes.len) {
        if (asprintf(&line, "Authorization: Bearer %s", c->token.bytes.data) < 0)
            memory_exhausted();
        add_secret_header(&list, line);
    } else if (c->username) {
        add_basic(&list, c);
    }
    for (size_t i = 0; i < c->as.n; i++)
        add_header(&list, c->as.lines[i]);
    if (content_type) {
        if (asprintf(&line, "Content-Type: %s", content_type) < 0)
            memory_exhausted();
        add_header(&list, line);
        free(line);
    }
    return list;
}

int endpoint_sign(const struct endpoint *e, const char *content_type, CURL *easy,
                  struct curl_slist **ret_headers, struct err *err)
{
    CURLcode rc = setup_tls(e->config, easy);

    if (rc == CURLE_OK && strncmp(e->proxy, "https:", 6) == 0)
        rc = setup_proxy_tls(e->config, easy);
    if (rc != CURLE_OK)
        return err_set(err, ERR_TRANSIENT, "%.120s: %s", e->base, curl_easy_strerror(rc));
    *ret_headers = make_headers(e, content_type);
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, *ret_headers);
    return 0;
}
