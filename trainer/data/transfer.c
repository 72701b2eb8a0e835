/* transfer.c - run one HTTP transfer with libcurl under limits on time, size and redirects. */
#include "trainer/data/transfer.h"

#include "common/fsutil.h"
#include "host/rank_state.h"

#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

struct body {
    CURL *easy;
    struct transfer *t;
    int64_t have;
    bool begun; /* the first bytes have come */
    bool too_large;
    int write_errno;
    char why[CURL_ERROR_SIZE];
};

/* A server that does not resume sends all: then what we have goes. */
static bool begin(struct body *b)
{
    long status = 0;

    b->begun = true;
    (void)curl_easy_getinfo(b->easy, CURLINFO_RESPONSE_CODE, &status);
    if (b->have && status == 200) {
        b->have = 0;
        if (ftruncate(b->t->fd, 0) || lseek(b->t->fd, 0, SEEK_SET)) {
            b->write_errno = errno;
            return false;
        }
    }
    return true;
}

static size_t take(char *bytes, size_t one, size_t n, void *arg)
{
    struct body *b = arg;

    (void)one; /* is 1 */
    if (!b->begun && !begin(b))
        return CURL_WRITEFUNC_ERROR;
    if (b->have + (int64_t)n > b->t->limits->bytes_max) {
        b->too_large = true;
        return CURL_WRITEFUNC_ERROR;
    }
    if (fs_write_all(b->t->fd, bytes, n)) {
        b->write_errno = errno;
        return CURL_WRITEFUNC_ERROR;
    }
    b->have += (int64_t)n;
    rank_state_alive();
    return n;
}

static int progress(void *arg, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
    const struct fetch_limits *l = ((struct body *)arg)->t->limits;

    (void)total, (void)now, (void)up_total, (void)up_now;
    return l->stopped && l->stopped(l->stop_ctx);
}

static int set_up(struct body *b)
{
    const struct fetch_limits *l = b->t->limits;
    const char *follow = strncmp(b->t->url, "https:", 6) == 0 ? "https" : "http,https";
    CURL *e = b->easy;

    return curl_easy_setopt(e, CURLOPT_URL, b->t->url) ||
           curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https") ||
           curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 1L) ||
           curl_easy_setopt(e, CURLOPT_MAXREDIRS, (long)FETCH_REDIRECTS_MAX) ||
           curl_easy_setopt(e, CURLOPT_REDIR_PROTOCOLS_STR, follow) ||
           curl_easy_setopt(e, CURLOPT_FAILONERROR, 1L) || curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L) ||
           curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT, (long)l->connect_s) ||
           curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, (long)FETCH_STALL_BYTES) ||
           curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, (long)l->stall_s) ||
           curl_easy_setopt(e, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)l->bytes_max) ||
           curl_easy_setopt(e, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)b->have) ||
           curl_easy_setopt(e, CURLOPT_ERRORBUFFER, b->why) || curl_easy_setopt(e, CURLOPT_NOPROGRESS, 0L) ||
           curl_easy_setopt(e, CURLOPT_XFERINFOFUNCTION, progress) ||
           curl_easy_setopt(e, CURLOPT_XFERINFODATA, b) || curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, take) ||
           curl_easy_setopt(e, CURLOPT_WRITEDATA, b) ||
           (l->ca_file && curl_easy_setopt(e, CURLOPT_CAINFO, l->ca_file));
}

/* The server was not reached at all: no name, no route, nobody listens, or nobody answers. */
static bool unreachable(const struct body *b, CURLcode code)
{
    curl_off_t connected_us = 0;

    (void)curl_easy_getinfo(b->easy, CURLINFO_CONNECT_TIME_T, &connected_us);
    return code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY ||
           code == CURLE_COULDNT_CONNECT || (code == CURLE_OPERATION_TIMEDOUT && !connected_us);
}

/* Who answers is not who was asked for, or cannot prove it. */
static bool untrusted(CURLcode code)
{
    return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
           code == CURLE_SSL_ISSUER_ERROR || code == CURLE_SSL_PINNEDPUBKEYNOTMATCH;
}

static int judge(const struct body *b, CURLcode code, struct err *err)
{
    const char *url = b->t->url;
    const char *why = b->why[0] ? b->why : curl_easy_strerror(code);
    long status = 0;

    if (code == CURLE_OK)
        return 0;
    (void)curl_easy_getinfo(b->easy, CURLINFO_RESPONSE_CODE, &status);
    if (b->write_errno)
        return err_errno(err, ERR_FATAL, b->write_errno, "cannot write %s", b->t->part);
    if (b->too_large || code == CURLE_FILESIZE_EXCEEDED)
        return err_set(err, ERR_INVALID, "%s: larger than %" PRId64 " bytes", url, b->t->limits->bytes_max);
    if (code == CURLE_ABORTED_BY_CALLBACK)
        return err_errno(err, ERR_TRANSIENT, EINTR, "%s: the download was stopped", url);
    if (code == CURLE_HTTP_RETURNED_ERROR)
        return err_set(err,
                       status == 404                                     ? ERR_NOT_FOUND
                       : status >= 500 || status == 429 || status == 408 ? ERR_TRANSIENT
                                                                         : ERR_INVALID,
                       "%s: the server answered %ld", url, status);
    if (code == CURLE_TOO_MANY_REDIRECTS || code == CURLE_UNSUPPORTED_PROTOCOL)
        return err_set(err, ERR_INVALID, "%s: redirected %s", url,
                       code == CURLE_TOO_MANY_REDIRECTS ? "too often" : "to an address that is not https");
    if (untrusted(code))
        return err_set(err, ERR_INVALID, "%s: %.100s (SSL_CERT_FILE names other authorities)", url, why);
    if (unreachable(b, code)) {
        err_set(err, ERR_NOT_FOUND, "%.120s", why); /* it names the server */
        err->code = ENETUNREACH;
        return -1;
    }
    return err_set(err, ERR_TRANSIENT, "%s: %.100s", url, why);
}

int transfer(struct transfer *t, struct err *err)
{
    struct body b = {.easy = curl_easy_init(), .t = t, .have = t->have};
    long status = 0;

    t->refused = false;
    if (!b.easy || set_up(&b)) {
        curl_easy_cleanup(b.easy);
        return err_memory(err, "no memory to set up a transfer");
    }
    CURLcode code = curl_easy_perform(b.easy);
    (void)curl_easy_getinfo(b.easy, CURLINFO_RESPONSE_CODE, &status);
    t->refused = t->have && (status == 416 || code == CURLE_RANGE_ERROR);
    int rc = judge(&b, code, err);
    curl_easy_cleanup(b.easy);
    return rc;
}
