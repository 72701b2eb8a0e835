/* member.c - a node's handle on the meeting: start, look, say, end; its threads are in member_speak.c and
 * member_listen.c. */
#include "common/clock.h"
#include "common/memory.h"
#include "common/thread.h"
#include "rendezvous/leader.h"
#include "rendezvous/member_connection.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

enum { END_MS = 2000 };

void member_unref(struct member *m)
{
    pthread_mutex_lock(&m->lock);
    const bool last = --m->refs == 0;
    pthread_mutex_unlock(&m->lock);
    if (!last)
        return;
    close(m->fd);
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->changed);
    free((char *)(uintptr_t)m->config.host);
    free((char *)(uintptr_t)m->config.run_id);
    free((char *)(uintptr_t)m->config.addr);
    free((char *)(uintptr_t)m->config.quorum.master_addr);
    free(m);
}

void member_wait_until(struct member *m, int64_t mono_ms)
{
    const struct timespec ts = {.tv_sec = mono_ms / 1000, .tv_nsec = mono_ms % 1000 * 1000000L};

    pthread_cond_timedwait(&m->changed, &m->lock, &ts);
}

int member_start_thread(void *(*run)(void *), struct member *m, struct err *err)
{
    pthread_t thread;

    pthread_mutex_lock(&m->lock);
    m->refs++;
    pthread_mutex_unlock(&m->lock);
    int code = thread_start(&thread, run, m);
    if (code == 0) {
        pthread_detach(thread);
        return 0;
    }
    member_unref(m);
    return err_errno(err, ERR_FATAL, code, "rendezvous: cannot start a thread");
}

struct member *member_start(const struct member_config *c, struct err *err)
{
    struct member *m = memory_must(calloc(1, sizeof(*m)));
    pthread_condattr_t attr;

    m->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    m->refs = 1;
    m->grace_ms = END_MS;
    m->config = *c;
    m->config.host = memory_strdup(c->host);
    m->config.run_id = memory_strdup(c->run_id);
    m->config.addr = memory_strdup(c->addr);
    m->config.quorum.master_addr = memory_strdup(c->quorum.master_addr);
    pthread_mutex_init(&m->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&m->changed, &attr);
    pthread_condattr_destroy(&attr);
    if (m->fd < 0)
        err_errno(err, ERR_FATAL, errno, "rendezvous: eventfd");
    else if (member_start_thread(member_speak_thread, m, err) == 0)
        return m;
    member_unref(m);
    return NULL;
}

int member_fd(const struct member *m)
{
    return m->fd;
}

void member_look(struct member *m, struct member_view *view)
{
    uint64_t ignored;

    pthread_mutex_lock(&m->lock);
    ssize_t n = read(m->fd, &ignored, sizeof(ignored)); /* fails when the view has not changed */
    (void)n;
    *view = m->view;
    pthread_mutex_unlock(&m->lock);
}

void member_say(struct member *m, const struct meeting_node *node)
{
    pthread_mutex_lock(&m->lock);
    struct meeting_node said = m->say;
    m->say = *node;
    m->say.beat = said.beat;
    m->say.tie = said.tie;
    m->say.leaders = said.leaders;
    m->say.heard_end = said.heard_end;
    memcpy(m->say.addr, said.addr, sizeof(said.addr));
    m->dirty = true;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

void member_say_steps(struct member *m, const struct steps *steps)
{
    pthread_mutex_lock(&m->lock);
    m->say.steps = *steps;
    pthread_mutex_unlock(&m->lock);
}

bool member_steps(struct member *m, struct steps *ret)
{
    pthread_mutex_lock(&m->lock);
    const bool here = m->leader != NULL;
    if (here)
        *ret = leader_steps(m->leader);
    pthread_mutex_unlock(&m->lock);
    return here;
}

/* A thread that does not end in time is left behind; it gives back its reference when it ends. */
void member_end(struct member *m, int64_t grace_ms)
{
    if (!m)
        return;
    pthread_mutex_lock(&m->lock);
    const int64_t limit_ms = clock_mono_ms() + END_MS + (m->view.leaders ? grace_ms : 0);
    m->stop = true;
    m->grace_ms = grace_ms;
    pthread_cond_broadcast(&m->changed);
    while (!m->speaker_ended && clock_mono_ms() < limit_ms)
        member_wait_until(m, limit_ms);
    pthread_mutex_unlock(&m->lock);
    member_unref(m);
}
