/* loop.c - the event loop; the only code of the process that blocks. */
#include "kube/loop.h"
#include "common/memory.h"

#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>

/* Two listeners and their clients (health.h), signals, a plugin; transfers have their own table inside libcurl. */
enum { FDS_MAX = 144, SIGNALS_PER_READ = 8 };

struct kube_loop {
    struct clock clock;
    CURLM *multi;
    struct heap timers;
    struct kube_loop_task *tasks, **last_task;
    struct kube_loop_task fence; /* separates the tasks of this turn from those of the next */
    struct kube_loop_fd *fds[FDS_MAX];
    struct curl_waitfd waits[FDS_MAX]; /* same index as fds */
    size_t n_fds;
    struct kube_loop_fd signal_fd;
    void (*on_signal)(void *ctx, int signal);
    void *signal_ctx;
    int64_t now_ms;
    long connections; /* kube_loop_connections */
    bool stop;
};

struct kube_loop *kube_loop_new(struct clock clock, struct err *err)
{
    struct kube_loop *l = memory_must(calloc(1, sizeof(*l)));

    l->clock = clock;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    l->multi = curl_multi_init();
    if (!l->multi) {
        curl_global_cleanup();
        free(l);
        err_set(err, ERR_FATAL, "event loop: libcurl gives no multi handle");
        return NULL;
    }
    l->last_task = &l->tasks;
    l->signal_fd.fd = -1;
    l->now_ms = clock.mono_ms(clock.ctx);
    return l;
}

void kube_loop_free(struct kube_loop *l)
{
    if (!l)
        return;
    curl_multi_cleanup(l->multi);
    curl_global_cleanup();
    heap_release(&l->timers);
    if (l->signal_fd.fd >= 0)
        close(l->signal_fd.fd);
    free(l);
}

int64_t kube_loop_now_ms(const struct kube_loop *l)
{
    return l->now_ms;
}

struct clock kube_loop_clock(const struct kube_loop *l)
{
    return l->clock;
}

int64_t kube_loop_wall_ms(const struct kube_loop *l)
{
    return l->clock.wall_ms(l->clock.ctx);
}

void *kube_loop_curl(struct kube_loop *l)
{
    return l->multi;
}

void kube_loop_connections(struct kube_loop *l, int change)
{
    l->connections += change;
    (void)curl_multi_setopt(l->multi, CURLMOPT_MAXCONNECTS, l->connections);
}

void kube_loop_timer_set(struct kube_loop *l, struct kube_loop_timer *t, int64_t at_ms)
{
    heap_add(&l->timers, &t->node, at_ms);
}

void kube_loop_timer_cancel(struct kube_loop *l, struct kube_loop_timer *t)
{
    heap_remove(&l->timers, &t->node);
}

void kube_loop_task_add(struct kube_loop *l, struct kube_loop_task *t)
{
    if (t->queued)
        return;
    t->queued = true;
    t->next = NULL;
    *l->last_task = t;
    l->last_task = &t->next;
}

void kube_loop_task_cancel(struct kube_loop *l, struct kube_loop_task *t)
{
    if (!t->queued)
        return;
    struct kube_loop_task **at = &l->tasks;
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    if (l->last_task == &t->next)
        l->last_task = at;
    t->queued = false;
}

int kube_loop_fd_add(struct kube_loop *l, struct kube_loop_fd *f, struct err *err)
{
    if (l->n_fds == FDS_MAX)
        return err_set(err, ERR_FATAL, "event loop: more than %d file descriptors", FDS_MAX);
    l->fds[l->n_fds] = f;
    f->slot = ++l->n_fds;
    return 0;
}

void kube_loop_fd_remove(struct kube_loop *l, struct kube_loop_fd *f)
{
    if (!f->slot)
        return;
    size_t i = f->slot - 1;
    size_t last = --l->n_fds;
    l->fds[i] = l->fds[last];
    l->waits[i] = l->waits[last];
    l->fds[i]->slot = i + 1;
    f->slot = 0;
}

static void read_signals(void *ctx, short revents)
{
    struct kube_loop *l = ctx;
    struct signalfd_siginfo info[SIGNALS_PER_READ];
    ssize_t n = read(l->signal_fd.fd, info, sizeof(info));

    (void)revents;
    for (size_t i = 0; n > 0 && i < (size_t)n / sizeof(info[0]); i++)
        l->on_signal(l->signal_ctx, (int)info[i].ssi_signo);
}

int kube_loop_signals(struct kube_loop *l, const int *signals, size_t n,
                      void (*on_signal)(void *ctx, int signal), void *ctx, struct err *err)
{
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < n; i++)
        sigaddset(&set, signals[i]);
    int fd = signalfd(l->signal_fd.fd, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0 || sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return err_errno(err, ERR_FATAL, errno, "event loop: signalfd");
    l->on_signal = on_signal;
    l->signal_ctx = ctx;
    if (l->signal_fd.fd >= 0)
        return 0;
    l->signal_fd = (struct kube_loop_fd){.ready = read_signals, .ctx = l, .fd = fd, .events = POLLIN};
    return kube_loop_fd_add(l, &l->signal_fd, err);
}

static int wait_ms(const struct kube_loop *l, int64_t max_wait_ms)
{
    const struct heap_node *first = heap_first(&l->timers);
    int64_t wait = max_wait_ms;

    if (l->tasks || (first && first->at_ms <= l->now_ms))
        return 0;
    if (first && first->at_ms - l->now_ms < wait)
        wait = first->at_ms - l->now_ms;
    if (wait < 0)
        return 0;
    return wait > 3600000 ? 3600000 : (int)wait;
}

static int poll_all(struct kube_loop *l, int timeout_ms, struct err *err)
{
    for (size_t i = 0; i < l->n_fds; i++) {
        const struct kube_loop_fd *f = l->fds[i];
        l->waits[i] = (struct curl_waitfd){.fd = f->fd,
                                           .events = (short)((f->events & POLLIN ? CURL_WAIT_POLLIN : 0) |
                                                             (f->events & POLLOUT ? CURL_WAIT_POLLOUT : 0))};
    }
    CURLMcode rc = curl_multi_poll(l->multi, l->waits, (unsigned)l->n_fds, timeout_ms, NULL);
    l->now_ms = l->clock.mono_ms(l->clock.ctx);
    return rc == CURLM_OK ? 0 : err_set(err, ERR_FATAL, "event loop: %s", curl_multi_strerror(rc));
}

/* From the last to the first: a callback may remove any descriptor, and the descriptor that moves to its
 * index was handled already. A callback may also change the events of another descriptor. libcurl reports an
 * error as POLLIN and POLLOUT, requested or not. */
static void run_fds(struct kube_loop *l)
{
    for (size_t i = l->n_fds; i-- > 0;) {
        if (i >= l->n_fds)
            continue;
        struct kube_loop_fd *f = l->fds[i];
        short revents = (short)(l->waits[i].revents & (f->events | ~l->waits[i].events));
        l->waits[i].revents = 0;
        if (revents)
            f->ready(f->ctx, revents);
    }
}

static int run_transfers(struct kube_loop *l, struct err *err)
{
    int running = 0;
    int left = 0;
    CURLMcode rc = curl_multi_perform(l->multi, &running);

    if (rc != CURLM_OK)
        return err_set(err, ERR_FATAL, "event loop: %s", curl_multi_strerror(rc));
    for (CURLMsg *m = curl_multi_info_read(l->multi, &left); m; m = curl_multi_info_read(l->multi, &left)) {
        struct kube_loop_transfer *t = NULL;
        if (m->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t);
        t->done(t->ctx, (int)m->data.result);
    }
    return 0;
}

/* Run the tasks queued before this call: a task that queues itself again runs in the next turn. */
static void run_tasks(struct kube_loop *l)
{
    kube_loop_task_add(l, &l->fence);
    while (l->tasks != &l->fence) {
        struct kube_loop_task *t = l->tasks;
        kube_loop_task_cancel(l, t);
        t->run(t->ctx);
    }
    kube_loop_task_cancel(l, &l->fence);
}

static struct kube_loop_timer *timer_of(struct heap_node *n)
{
    return (struct kube_loop_timer *)(void *)((char *)n - offsetof(struct kube_loop_timer, node));
}

/* Fire the timers due by this turn's clock. A timer that sets itself to a past time waits for the next turn. */
static void run_timers(struct kube_loop *l)
{
    uint64_t before = l->timers.order;

    for (;;) {
        struct heap_node *n = heap_first(&l->timers);
        if (!n || n->at_ms > l->now_ms || n->order >= before)
            return;
        heap_remove(&l->timers, n);
        timer_of(n)->fire(timer_of(n)->ctx);
    }
}

int kube_loop_turn(struct kube_loop *l, int64_t max_wait_ms, struct err *err)
{
    if (poll_all(l, wait_ms(l, max_wait_ms), err) < 0)
        return -1;
    run_fds(l);
    if (run_transfers(l, err) < 0)
        return -1;
    run_tasks(l);
    run_timers(l);
    return 0;
}

int kube_loop_run(struct kube_loop *l, struct err *err)
{
    l->stop = false;
    while (!l->stop)
        if (kube_loop_turn(l, INT64_MAX, err) < 0)
            return -1;
    return 0;
}

void kube_loop_stop(struct kube_loop *l)
{
    l->stop = true;
}
