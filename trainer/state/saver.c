/* saver.c - decide by steps and time when a checkpoint is due, copy the state, and let a thread write it. */
#include "trainer/state/saver.h"

#include "collectives/collectives.h"
#include "common/thread.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { NICE_MAX = 19 };

static int write_files(struct saver *s, struct err *err)
{
    cleanup_ckpt_writer struct ckpt_writer w = {.tmp = ""};

    if (snapshot_check(&s->what, err) || ckpt_begin(&w, s->dir, &s->manifest, &s->mark, err))
        return -1;
    if (s->locks && s->lock_fd <= 0)
        s->lock_fd = ckpt_lock(s->dir);
    return snapshot_write(&s->what, &w, err) || ckpt_commit(&w, s->keep, err) ? -1 : 0;
}

static void write_now(struct saver *s)
{
    struct err lost;

    s->outcome = (struct err){0};
    if (write_files(s, &s->outcome) && ckpt_claim(s->dir, &s->mark, &lost) && lost.kind == ERR_PEER)
        s->outcome = lost; /* another attempt has taken over, and removed what this one was writing */
}

/* Raise this thread's nice value: Linux has one per thread. */
static void give_way(void)
{
    const int nice = getpriority(PRIO_PROCESS, 0) + SAVER_NICE;

    (void)setpriority(PRIO_PROCESS, 0, nice < NICE_MAX ? nice : NICE_MAX);
}

static void enter(struct saver *s, int phase)
{
    pthread_mutex_lock(&s->lock);
    s->phase = phase;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void *work(void *arg)
{
    struct saver *s = arg;

    give_way();
    for (;;) {
        pthread_mutex_lock(&s->lock);
        while (s->phase != SAVER_WRITES && s->phase != SAVER_CLOSES)
            pthread_cond_wait(&s->changed, &s->lock);
        const bool closes = s->phase == SAVER_CLOSES;
        pthread_mutex_unlock(&s->lock);
        if (closes)
            return NULL;
        write_now(s);
        enter(s, SAVER_ENDED);
    }
}

int saver_open(struct saver *s, const struct snapshot *shape, struct err *why)
{
    pthread_condattr_t attr;

    if (s->rank != 0 || !s->dir)
        return 0;
    s->open = true;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &attr);
    pthread_condattr_destroy(&attr);
    const int code = thread_start(&s->thread, work, s);
    s->has_thread = code == 0;
    if (code)
        return err_errno(why, ERR_FATAL, code,
                         "cannot start a thread to write checkpoints beside the training");
    s->asynchronous = !(s->save_steps || s->save_ms) || snapshot_copy_make(&s->copy, shape, why) == 0;
    return s->asynchronous ? 0 : -1;
}

void saver_close(struct saver *s)
{
    if (!s->open)
        return;
    (void)saver_wait(s, -1);
    if (s->has_thread) {
        enter(s, SAVER_CLOSES);
        pthread_join(s->thread, NULL);
    }
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    snapshot_copy_release(&s->copy);
    if (s->lock_fd > 0)
        close(s->lock_fd);
    s->open = false;
}

uint32_t saver_flags(struct saver *s, int64_t step)
{
    if (!s->open)
        return 0;
    if ((s->save_steps && step % s->save_steps == 0) ||
        (s->save_ms && s->clock.mono_ms(s->clock.ctx) - s->last_ms >= s->save_ms))
        s->due = true;
    if (!s->due || s->requested || s->phase == SAVER_WRITES)
        return 0;
    s->requested = true;
    return COLLECTIVES_SAVE;
}

void saver_save(struct saver *s, const struct snapshot *what, bool unchanging)
{
    const int64_t step = what->cursor->step;

    s->wanted = s->due = s->requested = false;
    if (!s->open || step == s->last_step)
        return;
    s->manifest = (struct manifest){
        .step = step, .config = s->config, .launch = s->launch, .saved_ms = s->clock.wall_ms(s->clock.ctx)};
    snprintf(s->manifest.run_id, sizeof(s->manifest.run_id), "%s", s->run_id);
    s->last_ms = s->clock.mono_ms(s->clock.ctx);
    s->what = unchanging || !s->copy.bytes ? *what : *snapshot_copy_take(&s->copy, what);
    if (!s->has_thread)
        write_now(s);
    enter(s, s->has_thread ? SAVER_WRITES : SAVER_ENDED);
}

bool saver_wait(struct saver *s, int64_t timeout_ms)
{
    const int64_t end_ms = clock_mono_ms() + (timeout_ms > 0 ? timeout_ms : 0);
    const struct timespec at = {.tv_sec = end_ms / 1000, .tv_nsec = end_ms % 1000 * 1000000};
    int rc = 0;

    if (!s->open)
        return true;
    pthread_mutex_lock(&s->lock);
    while (s->phase == SAVER_WRITES && rc == 0)
        rc = timeout_ms < 0 ? pthread_cond_wait(&s->changed, &s->lock)
                            : pthread_cond_timedwait(&s->changed, &s->lock, &at);
    const bool idle = s->phase != SAVER_WRITES;
    pthread_mutex_unlock(&s->lock);
    return idle;
}

/* Without a code, compare the messages. */
static bool same_reason(const struct err *a, const struct err *b)
{
    return a->kind && a->kind == b->kind && a->code == b->code && (a->code || strcmp(a->msg, b->msg) == 0);
}

bool saver_end(struct saver *s, struct saver_outcome *ret)
{
    if (s->phase != SAVER_ENDED)
        return false;
    s->phase = SAVER_IDLE;
    *ret = (struct saver_outcome){s->manifest.step, s->outcome, same_reason(&s->outcome, &s->before)};
    if (!s->outcome.kind)
        s->last_step = s->manifest.step;
    s->before = s->outcome;
    return true;
}
