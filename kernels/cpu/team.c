/* team.c - workers spin briefly for the next job (one comes every few microseconds inside a step), then sleep. */
#include "kernels/cpu/team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { SPINS = 2000 };

struct member {
    struct team *team;
    int index; /* 0 is the caller */
    pthread_t thread;
};

struct team {
    int threads;
    int started;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    atomic_uint job; /* counts jobs; a change is the signal to work */
    atomic_int left; /* members still at it */
    atomic_bool stop;
    int n;
    run_fn *fn;
    void *arg;
    struct member members[];
};

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void do_share(struct team *t, int index)
{
    int begin = (int)((int64_t)t->n * index / t->threads);
    int end = (int)((int64_t)t->n * (index + 1) / t->threads);
    if (begin < end)
        t->fn(t->arg, begin, end);
}

/* Wait until the job counter leaves `seen`. */
static unsigned await_job(struct team *t, unsigned seen)
{
    unsigned now = seen;
    for (int i = 0; i < SPINS && now == seen; i++) {
        relax();
        now = atomic_load_explicit(&t->job, memory_order_acquire);
    }
    if (now != seen)
        return now;
    pthread_mutex_lock(&t->lock);
    while ((now = atomic_load(&t->job)) == seen)
        pthread_cond_wait(&t->wake, &t->lock);
    pthread_mutex_unlock(&t->lock);
    return now;
}

static void *work(void *arg)
{
    struct member *m = arg;
    struct team *t = m->team;
    for (unsigned seen = 0;;) {
        seen = await_job(t, seen);
        if (atomic_load(&t->stop))
            return NULL;
        do_share(t, m->index);
        atomic_fetch_sub_explicit(&t->left, 1, memory_order_release);
    }
}

static void post(struct team *t)
{
    pthread_mutex_lock(&t->lock);
    atomic_fetch_add(&t->job, 1);
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->lock);
}

struct team *team_make(int threads, struct err *err)
{
    struct team *t = calloc(1, sizeof *t + (size_t)threads * sizeof t->members[0]);
    if (!t) {
        err_memory(err, "out of memory for %d threads", threads);
        return NULL;
    }
    t->threads = threads;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->wake, NULL);
    for (t->started = 1; t->started < threads; t->started++) {
        struct member *m = &t->members[t->started];
        *m = (struct member){.team = t, .index = t->started};
        int rc = pthread_create(&m->thread, NULL, work, m);
        if (rc != 0) {
            err_errno(err, ERR_FATAL, rc, "cannot start thread %d of %d", t->started + 1, threads);
            team_free(t);
            return NULL;
        }
    }
    return t;
}

void team_free(struct team *t)
{
    if (!t)
        return;
    atomic_store(&t->stop, true);
    post(t);
    for (int i = 1; i < t->started; i++)
        pthread_join(t->members[i].thread, NULL);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

void team_run(struct team *t, int n, run_fn *fn, void *arg)
{
    t->n = n;
    t->fn = fn;
    t->arg = arg;
    atomic_store(&t->left, t->threads - 1);
    post(t);
    do_share(t, 0);
    for (int i = 0; atomic_load_explicit(&t->left, memory_order_acquire) > 0; i++) {
        if (i < SPINS)
            relax();
        else
            sched_yield(); /* fewer processors than threads: let the others finish */
    }
}
