/* resolve.c - resolve a host name in a thread, before a deadline, and connect to the addresses found. */
#include "host/resolve.h"
#include "common/clock.h"
#include "common/fsutil.h"
#include "common/memory.h"
#include "common/sv.h"
#include "common/thread.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum {
    SERVICE_BYTES = 16,
    CONF_BYTES = 64 * 1024,
    UNANSWERED = 1,    /* no EAI_*, all of which are negative */
    CONNECT_MS = 3000, /* per address; a retry resolves the name again */
};

/* Its owner and the thread of a lookup share it; the last user frees it. */
struct resolver {
    resolver_lookup *look;
    void *arg;
    char *host, service[SERVICE_BYTES];
    int code;          /* of the last lookup: EAI_*, or UNANSWERED */
    int connect_errno; /* of the connection after a successful lookup; 0: no address has answered */
    bool under_way;    /* a lookup has been started, and its result not taken */
    /* With the lock: */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int refs;
    bool done; /* that lookup has ended, with these results */
    int done_code;
    struct addrinfo *found;
};

/* The domains of the last "search" or "domain" line, as in resolv.conf(5). */
static struct sv search_domains(struct sv conf)
{
    struct sv line, found = {"", 0};

    while (sv_next(&conf, '\n', &line)) {
        const size_t word = strcspn(line.p, " \t\n");
        if (sv_eq((struct sv){line.p, word}, "search") || sv_eq((struct sv){line.p, word}, "domain"))
            found = sv_skip(line, word);
    }
    return found;
}

int resolver_search(const char *conf, resolver_lookup *look, void *arg, const char *host, const char *service,
                    const struct addrinfo *hints, struct addrinfo **ret)
{
    const size_t len = strlen(host);
    int code = look(arg, host, service, hints, ret);
    cleanup_buf struct buf text = BUF_INIT(CONF_BYTES);
    char name[NI_MAXHOST];
    struct err ignored;

    if (code != EAI_NONAME || !strchr(host, '.') || host[len - 1] == '.' ||
        fs_read(conf, &text, &ignored) < 0)
        return code;
    struct sv rest = search_domains(sv_from(buf_str(&text)));
    while (code == EAI_NONAME && (rest = sv_trim(rest)).len) {
        const size_t word = strcspn(rest.p, " \t\r\n");
        if (snprintf(name, sizeof(name), "%s.%.*s.", host, (int)word, rest.p) < (int)sizeof(name))
            code = look(arg, name, service, hints, ret);
        rest = sv_skip(rest, word);
    }
    return code;
}

static int get_addresses(void *arg, const char *host, const char *service, const struct addrinfo *hints,
                         struct addrinfo **ret)
{
    (void)arg;
    const int code = getaddrinfo(host, service, hints, ret);

    return code == EAI_NODATA ? EAI_NONAME : code; /* the name has a record, but no address */
}

static int look_system(void *arg, const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret)
{
    return resolver_search("/etc/resolv.conf", get_addresses, arg, host, service, hints, ret);
}

struct resolver *resolver_new_with(const char *host, int port, resolver_lookup *look, void *arg)
{
    struct resolver *r = memory_must(calloc(1, sizeof(*r)));
    pthread_condattr_t attr;

    *r = (struct resolver){
        .look = look, .arg = arg, .host = memory_strdup(host), .code = UNANSWERED, .refs = 1};
    snprintf(r->service, sizeof(r->service), "%d", port);
    pthread_mutex_init(&r->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&r->changed, &attr);
    pthread_condattr_destroy(&attr);
    return r;
}

struct resolver *resolver_new(const char *host, int port)
{
    return resolver_new_with(host, port, look_system, NULL);
}

void resolver_free(struct resolver *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    const bool last = --r->refs == 0;
    pthread_mutex_unlock(&r->lock);
    if (!last)
        return;
    if (r->found)
        freeaddrinfo(r->found);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->changed);
    free(r->host);
    free(r);
}

static void *run(void *arg)
{
    struct resolver *r = arg;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    const int code = r->look(r->arg, r->host, r->service, &hints, &found);

    pthread_mutex_lock(&r->lock);
    r->done_code = code;
    r->found = code == 0 ? found : NULL;
    r->done = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    resolver_free(r);
    return NULL;
}

/* False: no thread; treat it as a host that cannot be resolved yet. */
static bool start(struct resolver *r)
{
    pthread_t thread;

    pthread_mutex_lock(&r->lock);
    r->refs++;
    r->done = false;
    pthread_mutex_unlock(&r->lock);
    r->under_way = thread_start(&thread, run, r) == 0;
    if (r->under_way)
        pthread_detach(thread);
    else
        resolver_free(r);
    return r->under_way;
}

static bool wait_done(struct resolver *r, int64_t deadline_ms)
{
    const struct timespec ts = {.tv_sec = deadline_ms / 1000, .tv_nsec = deadline_ms % 1000 * 1000000L};

    pthread_mutex_lock(&r->lock);
    while (!r->done && clock_mono_ms() < deadline_ms)
        pthread_cond_timedwait(&r->changed, &r->lock, &ts);
    const bool done = r->done;
    pthread_mutex_unlock(&r->lock);
    return done;
}

int resolver_wait(struct resolver *r, int64_t deadline_ms, struct addrinfo **ret)
{
    const struct addrinfo numeric = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};

    if (getaddrinfo(r->host, r->service, &numeric, ret) == 0) {
        r->code = 0;
        return 1;
    }
    if (!r->under_way && !start(r))
        return -1;
    if (!wait_done(r, deadline_ms))
        return 0;
    r->under_way = false;
    r->code = r->done_code;
    r->connect_errno = 0;
    *ret = TAKE(r->found);
    return *ret ? 1 : -1;
}

const char *resolver_why(const struct resolver *r, bool *unresolved)
{
    *unresolved = r->code != 0;
    if (r->code == UNANSWERED)
        return "no name server has answered";
    if (r->code)
        return gai_strerror(r->code);
    return r->connect_errno ? strerror(r->connect_errno) : "its address does not answer";
}

static int left_ms(int64_t deadline_ms)
{
    const int64_t left = deadline_ms - clock_mono_ms();

    return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

/* 0, or errno. */
static int connect_to(int fd, const struct addrinfo *at, int64_t deadline_ms)
{
    struct pollfd pfd = {.fd = fd, .events = POLLOUT};
    int code = 0, n;
    socklen_t len = sizeof(code);

    if (connect(fd, at->ai_addr, at->ai_addrlen) < 0 && errno != EINPROGRESS)
        return errno;
    while ((n = poll(&pfd, 1, left_ms(deadline_ms))) < 0 && errno == EINTR)
        ;
    return n > 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &len) == 0 ? code : ETIMEDOUT;
}

static int dial_one(struct resolver *r, const struct addrinfo *at, int64_t deadline_ms)
{
    cleanup_close int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    r->connect_errno = fd < 0 ? errno : connect_to(fd, at, deadline_ms);
    return r->connect_errno ? -1 : TAKE_FD(fd);
}

int resolver_dial(struct resolver *r, int64_t deadline_ms)
{
    struct addrinfo *all = NULL;
    int fd = -1, left = 0;

    if (resolver_wait(r, deadline_ms, &all) <= 0)
        return -1;
    for (const struct addrinfo *at = all; at; at = at->ai_next)
        left++;
    for (const struct addrinfo *at = all; at && fd < 0; at = at->ai_next) {
        const int share_ms = left_ms(deadline_ms) / left--;
        fd = dial_one(r, at, clock_mono_ms() + (share_ms < CONNECT_MS ? share_ms : CONNECT_MS));
    }
    freeaddrinfo(all);
    return fd;
}
