/* host_phase.c - the barrier of one phase between ranks of a host: arrive, wait for all, compare their calls. */
#include "collectives/host.h"
#include "common/clock.h"

#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int host_left_ms(int64_t deadline_ms)
{
    int64_t left = deadline_ms - clock_mono_ms();

    return left <= 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

static void futex_wait(_Atomic uint32_t *word, uint32_t expected, int ms)
{
    const struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    syscall(SYS_futex, word, FUTEX_WAIT, expected, &ts, NULL, 0);
}

static void futex_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

const char *host_op_name(uint32_t op)
{
    static const char *const names[] = {
        [0] = "nothing",
        [HOST_OPEN] = "open",
        [HOST_ALL_REDUCE] = "all_reduce",
        [HOST_ALL_REDUCE_F64] = "all_reduce_f64",
        [HOST_BROADCAST] = "broadcast",
        [HOST_ALL_GATHER] = "all_gather",
        [HOST_BARRIER] = "barrier",
        [HOST_SHARED] = "shared",
        [HOST_MESSAGE] = "message",
    };
    return op < ARRAY_LEN(names) ? names[op] : "something unknown";
}

int host_fail(struct host *h, const struct err *err)
{
    if (h->failed.kind != ERR_NONE)
        return -1;
    h->failed = *err;
    if (h->others.watch && err->kind != ERR_PEER) /* the watch reports a lost peer itself */
        watch_fail(h->others.watch, err);
    return -1;
}

void host_raise_lost(struct host *h, uint32_t lost)
{
    struct host_head *head = host_head(h);
    uint32_t none = 0;

    atomic_compare_exchange_strong(&head->lost, &none, lost);
    atomic_fetch_or(&head->generation, HOST_LOST);
    futex_wake_all(&head->generation);
}

int host_peers_check(struct host *h, const char *what, struct err *err)
{
    struct host_head *head = host_head(h);
    uint32_t lost = atomic_load(&head->lost);

    for (int r = 0; r < h->world && !lost; r++) {
        struct pollfd pfd = {.fd = h->links[r], .events = POLLRDHUP};
        if (h->links[r] >= 0 && poll(&pfd, 1, 0) > 0 && pfd.revents & (POLLHUP | POLLRDHUP | POLLERR))
            lost = (uint32_t)r + 1;
    }
    if (!lost || lost == (uint32_t)h->rank + 1)
        return 0;
    host_raise_lost(h, lost);
    err_set(err, ERR_PEER, "%s: rank %u went away", what, (uint32_t)h->base + lost - 1);
    if (h->others.watch)
        watch_lost(h->others.watch, what, err);
    return -1;
}

static int timed_out(const struct host *h, const char *what, struct err *err)
{
    char missing[120] = "";
    size_t at = 0;

    if (h->others.watch)
        return watch_timed_out(h->others.watch, what, err);
    for (int r = 0; r < h->world; r++) {
        uint32_t phase = atomic_load(&host_slot(h, r)->phase);
        if ((int32_t)(phase - h->phase) >= 0)
            continue;
        at += (size_t)snprintf(missing + at, sizeof(missing) - at, "%s%d", at ? ", " : "", h->base + r);
        if (at >= sizeof(missing))
            break;
    }
    return err_set(err, ERR_TIMEOUT, "%s: deadline passed while waiting for rank %s", what, missing);
}

static bool passed(const struct host_head *head, uint32_t generation)
{
    uint32_t now = atomic_load_explicit(&head->generation, memory_order_acquire);

    return now / HOST_BARRIER_STEP != generation / HOST_BARRIER_STEP;
}

/* Spinning avoids the latency of a wake-up when each rank has a CPU of its own, and delays the others when ranks
 * share a CPU. So spin with yields in between, and adapt the number of iterations: double after a success, halve
 * after a failure. */
static bool spin_for(struct host *h, uint32_t generation)
{
    const struct host_head *head = host_head(h);

    for (int i = 0; i < h->spins; i++) {
        if (passed(head, generation)) {
            h->spins = h->spins * 2 < HOST_SPINS_MAX ? h->spins * 2 : HOST_SPINS_MAX;
            return true;
        }
        if (i % HOST_SPINS_PER_YIELD == HOST_SPINS_PER_YIELD - 1)
            sched_yield();
        else
            relax();
    }
    if (h->spins > HOST_SPINS_MIN)
        h->spins /= 2;
    return false;
}

/* Sleep until the barrier is complete or a rank is lost. Also check the peers and the other hosts every
 * HOST_SLICE_MS: not every rank can start an alarm thread, and that thread does not see other hosts. */
static int wait_for(struct host *h, uint32_t generation, const char *what, int64_t deadline_ms,
                    struct err *err)
{
    struct host_head *head = host_head(h);
    uint32_t expected = generation & ~(uint32_t)HOST_LOST; /* includes HOST_LOST after this rank has handled
                                                            * it */
    int rc = 0;

    if (spin_for(h, generation))
        return 0;
    atomic_fetch_add(&head->sleepers, 1);
    while (rc == 0 && !passed(head, generation)) {
        int left = host_left_ms(deadline_ms);
        futex_wait(&head->generation, expected, left < h->slice_ms ? left : h->slice_ms);
        expected |= atomic_load(&head->generation) & HOST_LOST;
        if (passed(head, generation))
            break;
        if (host_peers_check(h, what, err) < 0 ||
            (h->others.look && h->others.look(h->others.arg, what, err) < 0))
            rc = -1;
        else if (host_left_ms(deadline_ms) == 0)
            rc = timed_out(h, what, err);
    }
    /* The last rank may have arrived after the check: then the barrier is complete and there is no error. */
    if (passed(head, generation))
        rc = 0;
    atomic_fetch_sub(&head->sleepers, 1);
    return rc;
}

static int arrive(struct host *h, const char *what, int64_t deadline_ms, struct err *err)
{
    struct host_head *head = host_head(h);
    uint32_t generation = atomic_load(&head->generation);

    h->phase++;
    atomic_store(&host_slot(h, h->rank)->phase, h->phase);
    if (atomic_fetch_add(&head->arrived, 1) + 1 == (uint32_t)h->world) {
        atomic_store(&head->arrived, 0);
        atomic_fetch_add(&head->generation, HOST_BARRIER_STEP);
        if (atomic_load(&head->sleepers))
            futex_wake_all(&head->generation);
        return 0;
    }
    return wait_for(h, generation, what, deadline_ms, err);
}

int host_compare(int a, const struct host_call *x, int b, const struct host_call *y, struct err *err)
{
    if (x->op == y->op && x->n == y->n && x->root == y->root && x->shared_at == y->shared_at &&
        x->has_flags == y->has_flags)
        return 0;
    return err_set(err, ERR_INVALID,
                   "ranks disagree: rank %d is in %s of %llu (root %u), rank %d in %s of %llu (root %u)%s", a,
                   host_op_name(x->op), (unsigned long long)x->n, x->root, b, host_op_name(y->op),
                   (unsigned long long)y->n, y->root,
                   x->shared_at == y->shared_at ? "" : ", in other memory");
}

static int compare(const struct host *h, uint32_t phase, struct err *err)
{
    for (int r = 1; r < h->world; r++)
        if (host_compare(h->base, &host_slot(h, 0)->call[phase % 2], h->base + r,
                         &host_slot(h, r)->call[phase % 2], err) < 0)
            return -1;
    return 0;
}

int host_phase(struct host *h, const struct host_call *call, int64_t deadline_ms, struct err *err)
{
    struct host_slot *mine = host_slot(h, h->rank);
    const uint32_t phase = h->phase;
    struct err why = {0};

    if (h->failed.kind != ERR_NONE) {
        *err = h->failed;
        return -1;
    }
    if (call)
        mine->call[phase % 2] = *call;
    else
        mine->call[phase % 2] = mine->call[(phase + 1) % 2];
    if (arrive(h, host_op_name(mine->call[phase % 2].op), deadline_ms, &why) < 0 ||
        (call && compare(h, phase, &why) < 0)) {
        *err = why;
        return host_fail(h, &why);
    }
    return 0;
}
