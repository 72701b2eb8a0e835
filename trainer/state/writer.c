/* writer.c - a thread that takes a job, writes it as a checkpoint and leaves the outcome. */
#include "trainer/state/writer.h"

#include "common/memory.h"
#include "common/thread.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { NICE_MAX = 19 };

struct writer {
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* of the next ones, but for busy */
    pthread_cond_t changed;
    atomic_bool busy; /* from writer_begin until the outcome is there */
    bool ending;
    bool ended; /* a job, and nobody has taken its outcome */
    struct writer_job job;
    struct err outcome;
};

int writer_write(const struct writer_job *job, struct err *err)
{
    cleanup_ckpt_writer struct ckpt_writer w = {.tmp = ""};

    return snapshot_check(&job->what, err) || ckpt_begin(&w, job->dir, &job->manifest, err) ||
                   snapshot_write(&job->what, &w, err) || ckpt_commit(&w, job->keep, err)
               ? -1
               : 0;
}

/* Of this thread alone: Linux has a nice value for each. */
static void give_way(void)
{
    const int nice = getpriority(PRIO_PROCESS, 0) + WRITER_NICE;

    (void)setpriority(PRIO_PROCESS, 0, nice < NICE_MAX ? nice : NICE_MAX);
}

static struct err run(const struct writer_job *job)
{
    struct err err = {0};

    return writer_write(job, &err) ? err : (struct err){0};
}

static void *work(void *arg)
{
    struct writer *w = arg;

    give_way();
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->busy && !w->ending)
            pthread_cond_wait(&w->changed, &w->lock);
        if (!w->busy)
            break;
        pthread_mutex_unlock(&w->lock);
        const struct err outcome = run(&w->job);
        pthread_mutex_lock(&w->lock);
        w->outcome = outcome;
        w->ended = true;
        atomic_store(&w->busy, false);
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

struct writer *writer_open(struct err *why)
{
    struct writer *w = memory_must(calloc(1, sizeof(*w)));
    pthread_condattr_t attr;

    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->changed, &attr);
    pthread_condattr_destroy(&attr);
    const int code = thread_start(&w->thread, work, w);
    w->has_thread = code == 0;
    if (code)
        err_errno(why, ERR_FATAL, code, "cannot start a thread to write checkpoints beside the training");
    return w;
}

bool writer_has_thread(const struct writer *w)
{
    return w->has_thread;
}

void writer_close(struct writer *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->ending = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    if (w->has_thread)
        pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

void writer_begin(struct writer *w, const struct writer_job *job)
{
    if (!w->has_thread) {
        w->outcome = run(job);
        w->ended = true;
        return;
    }
    pthread_mutex_lock(&w->lock);
    w->job = *job;
    w->ended = false;
    atomic_store(&w->busy, true);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

bool writer_busy(const struct writer *w)
{
    return atomic_load(&w->busy);
}

bool writer_wait(struct writer *w, int64_t timeout_ms)
{
    struct timespec at;
    int rc = 0;

    clock_gettime(CLOCK_MONOTONIC, &at);
    if (timeout_ms > 0) {
        at.tv_sec += timeout_ms / 1000;
        at.tv_nsec += timeout_ms % 1000 * 1000000;
        at.tv_sec += at.tv_nsec / 1000000000;
        at.tv_nsec %= 1000000000;
    }
    pthread_mutex_lock(&w->lock);
    while (w->busy && rc == 0)
        rc = timeout_ms < 0 ? pthread_cond_wait(&w->changed, &w->lock)
                            : pthread_cond_timedwait(&w->changed, &w->lock, &at);
    const bool idle = !w->busy;
    pthread_mutex_unlock(&w->lock);
    return idle;
}

bool writer_end(struct writer *w, struct err *ret)
{
    if (writer_busy(w))
        return false;
    pthread_mutex_lock(&w->lock);
    const bool ended = w->ended;
    w->ended = false;
    if (ended)
        *ret = w->outcome;
    pthread_mutex_unlock(&w->lock);
    return ended;
}
