/* fetch.c - download a file from the first address that serves it with the expected checksum, then write
 * it. */
#include "trainer/data/fetch.h"

#include "common/clock.h"
#include "common/fsutil.h"
#include "host/rank_state.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

enum { CONNECT_S = 20, STALL_BYTES = 1024, LOCK_TICK_MS = 50, TRIES = 3 };

/* One HTTP transfer. */
struct transfer {
    CURL *easy;
    const char *url;
    const struct fetch_limits *limits;
    struct buf *bytes; /* `full` if there are too many */
    char why[CURL_ERROR_SIZE];
};

static size_t take(char *bytes, size_t one, size_t n, void *arg)
{
    struct transfer *t = arg;

    (void)one; /* always 1 */
    rank_state_alive();
    return buf_append(t->bytes, bytes, n, NULL) ? CURL_WRITEFUNC_ERROR : n;
}

static bool is_stopped(const struct fetch_limits *l)
{
    return l->stopped && l->stopped(l->stop_ctx);
}

static int progress(void *arg, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
    const struct transfer *t = arg;

    (void)total, (void)now, (void)up_total, (void)up_now;
    return is_stopped(t->limits);
}

static int set_up(struct transfer *t)
{
    const struct fetch_limits *l = t->limits;
    const char *follow = strncmp(t->url, "https:", 6) == 0 ? "https" : "http,https";
    CURL *e = t->easy;

    return curl_easy_setopt(e, CURLOPT_URL, t->url) ||
           curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https") ||
           curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 1L) ||
           curl_easy_setopt(e, CURLOPT_MAXREDIRS, (long)FETCH_REDIRECTS_MAX) ||
           curl_easy_setopt(e, CURLOPT_REDIR_PROTOCOLS_STR, follow) ||
           curl_easy_setopt(e, CURLOPT_FAILONERROR, 1L) || curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L) ||
           curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S) ||
           curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, (long)STALL_BYTES) ||
           curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, (long)l->stall_s) ||
           curl_easy_setopt(e, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)l->bytes_max) ||
           curl_easy_setopt(e, CURLOPT_ERRORBUFFER, t->why) || curl_easy_setopt(e, CURLOPT_NOPROGRESS, 0L) ||
           curl_easy_setopt(e, CURLOPT_XFERINFOFUNCTION, progress) ||
           curl_easy_setopt(e, CURLOPT_XFERINFODATA, t) || curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, take) ||
           curl_easy_setopt(e, CURLOPT_WRITEDATA, t) ||
           (l->ca_file && curl_easy_setopt(e, CURLOPT_CAINFO, l->ca_file));
}

/* Whether the server was not reached: no name, no route, nothing listens, or nothing answers. */
static bool unreachable(const struct transfer *t, CURLcode code)
{
    curl_off_t connected_us = 0;

    (void)curl_easy_getinfo(t->easy, CURLINFO_CONNECT_TIME_T, &connected_us);
    return code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY ||
           code == CURLE_COULDNT_CONNECT || (code == CURLE_OPERATION_TIMEDOUT && !connected_us);
}

/* Whether the server's certificate is wrong. */
static bool untrusted(CURLcode code)
{
    return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
           code == CURLE_SSL_ISSUER_ERROR || code == CURLE_SSL_PINNEDPUBKEYNOTMATCH;
}

static int judge(const struct transfer *t, CURLcode code, struct err *err)
{
    const char *url = t->url;
    const char *why = t->why[0] ? t->why : curl_easy_strerror(code);
    long status = 0;

    if (code == CURLE_OK)
        return 0;
    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    if (t->bytes->full || code == CURLE_FILESIZE_EXCEEDED)
        return err_set(err, ERR_INVALID, "%s: larger than %zu bytes", url, t->limits->bytes_max);
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
    if (unreachable(t, code)) {
        err_set(err, ERR_NOT_FOUND, "%.120s", why); /* curl's message names the server */
        err->code = ENETUNREACH;
        return -1;
    }
    return err_set(err, ERR_TRANSIENT, "%s: %.100s", url, why);
}

static int transfer(const char *url, const struct fetch_limits *l, struct buf *bytes, struct err *err)
{
    struct transfer t = {.easy = curl_easy_init(), .url = url, .limits = l, .bytes = bytes};
    const bool ready = t.easy && !set_up(&t);

    int rc =
        ready ? judge(&t, curl_easy_perform(t.easy), err) : err_memory(err, "no memory to set up a transfer");
    curl_easy_cleanup(t.easy);
    return rc;
}

void fetch_sum(const void *bytes, size_t len, char out[static FETCH_SUM_BYTES])
{
    uint8_t hash[SHA256_BYTES];
    struct sha256 s;

    sha256_begin(&s);
    sha256_add(&s, bytes, len);
    sha256_end(&s, hash);
    for (int i = 0; i < SHA256_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", hash[i]);
}

static int from_one(const struct fetch *f, const char *url, struct err *err)
{
    cleanup_buf struct buf bytes = BUF_INIT(f->limits.bytes_max);
    char sum[FETCH_SUM_BYTES];

    if (transfer(url, &f->limits, &bytes, err))
        return -1;
    fetch_sum(buf_str(&bytes), bytes.len, sum);
    if (strcmp(sum, f->sha256) != 0)
        return err_set(err, ERR_INVALID,
                       "%s: SHA-256 %.16s..., expected %.16s...: damaged in transfer, or a different file",
                       url, sum, f->sha256);
    return fs_write_atomic(f->path, bytes.data, bytes.len, err);
}

/* Sleep. True: stopped meanwhile. */
static bool pause_for(const struct fetch_limits *l, int64_t ms, struct err *err)
{
    const struct timespec tick = {.tv_nsec = 50000000};
    const int64_t end = clock_mono_ms() + ms;

    while (!is_stopped(l)) {
        if (clock_mono_ms() >= end)
            return false;
        nanosleep(&tick, NULL);
    }
    err_errno(err, ERR_TRANSIENT, EINTR, "the download was stopped");
    return true;
}

/* Lock against other processes; closing the descriptor unlocks. */
static int lock(const char *path, const struct fetch_limits *l, struct err *err)
{
    const int64_t end = clock_mono_ms() + l->lock_ms;
    const char *slash = strrchr(path, '/');
    char name[PATH_MAX];

    int len = snprintf(name, sizeof(name), "%.*s.fetch.lock", slash ? (int)(slash - path + 1) : 0, path);
    if (len >= (int)sizeof(name))
        return err_set(err, ERR_INVALID, "%.60s...: path too long", path);
    cleanup_close int fd = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_errno(err, ERR_FATAL, errno, "cannot write %s", name);
    while (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_errno(err, ERR_FATAL, errno, "cannot lock %s", name);
        if (clock_mono_ms() >= end)
            return err_set(err, ERR_TRANSIENT, "%s: another process has held it for %" PRId64 " ms", name,
                           l->lock_ms);
        if (pause_for(l, LOCK_TICK_MS, err))
            return -1;
    }
    return TAKE_FD(fd);
}

/* How helpful an error is: of several addresses the most helpful one is reported. */
static int weight(const struct err *e)
{
    if (e->kind == ERR_TRANSIENT) /* a retry may succeed */
        return 4;
    if (e->kind == ERR_NOT_FOUND)
        return e->code == ENETUNREACH ? 1 : 2;
    return e->kind == ERR_NONE ? 0 : 3;
}

/* Try each address once. */
static int one_round(const struct fetch *f, struct err *err)
{
    *err = (struct err){0};
    for (int i = 0; i < FETCH_MIRRORS_MAX && f->urls[i]; i++) {
        struct err e = {0};
        if (from_one(f, f->urls[i], &e) == 0)
            return 0;
        const bool last = e.kind == ERR_FATAL || e.code == EINTR; /* a full disk is full for all of them */
        if (last || weight(&e) > weight(err))
            *err = e;
        if (last)
            break;
    }
    return -1;
}

int fetch(const struct fetch *f, struct err *err)
{
    cleanup_close int held = lock(f->path, &f->limits, err);

    if (held < 0)
        return -1;
    if (access(f->path, F_OK) == 0)
        return 0;
    for (int tries = 1;; tries++) {
        if (one_round(f, err) == 0)
            return 0;
        const bool passes = err->code == ENETUNREACH || (err->kind == ERR_TRANSIENT && err->code != EINTR);
        if (!passes || tries == TRIES || pause_for(&f->limits, tries * f->limits.pause_ms, err))
            return -1;
    }
}

/* The addresses of a data set, and the SHA-256 of the files that they have had since they were published. */
static const struct family {
    const char *folder;
    const char *mirrors[FETCH_MIRRORS_MAX];
    const char *sha256[DATASET_PARTS];
} MNIST =
    {
        .folder = "MNIST/raw",
        .mirrors = {"https://ossci-datasets.s3.amazonaws.com/mnist",
                    "https://storage.googleapis.com/cvdf-datasets/mnist"},
        .sha256 = {"440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                   "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                   "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                   "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"},
},
  FASHION = {
      .folder = "FashionMNIST/raw",
      .mirrors = {"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"},
      .sha256 = {"3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                 "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                 "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                 "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"},
};

static int fetch_part(const struct family *of, int part, const char *folder,
                      const struct fetch_limits *limits, struct err *err)
{
    char path[PATH_MAX];
    char urls[FETCH_MIRRORS_MAX][128];
    struct fetch f = {.path = path, .sha256 = of->sha256[part], .limits = *limits};

    if (snprintf(path, sizeof(path), "%s/%s.gz", folder, DATASET_FILE[part]) >= (int)sizeof(path))
        return err_set(err, ERR_INVALID, "%.60s...: path too long", folder);
    path[strlen(path) - 3] = '\0';
    if (access(path, F_OK) == 0) /* already there, uncompressed */
        return 0;
    path[strlen(path)] = '.';
    for (int i = 0; i < FETCH_MIRRORS_MAX && of->mirrors[i]; i++) {
        snprintf(urls[i], sizeof(urls[i]), "%s/%s.gz", of->mirrors[i], DATASET_FILE[part]);
        f.urls[i] = urls[i];
    }
    return fetch(&f, err);
}

int fetch_dataset(const char *dir, enum dataset_name name, const struct fetch_limits *limits, struct err *err)
{
    const struct family *of = name == DATASET_FASHION_MNIST ? &FASHION : &MNIST;
    char folder[PATH_MAX];

    if (snprintf(folder, sizeof(folder), "%s/%s", dir, of->folder) >= (int)sizeof(folder))
        return err_set(err, ERR_INVALID, "%.60s...: path too long", dir);
    if (fs_mkdirs(folder, err))
        return -1;
    for (int part = 0; part < DATASET_PARTS; part++)
        if (fetch_part(of, part, folder, limits, err))
            return -1;
    return 0;
}
