/* feeds.c - a feed for each pod, by the number of its stream. */
#include "cli/logs/feeds.h"

#include "cli/say.h"

#include <stdio.h>
#include <string.h>

static struct feed *feed_of(struct feeds *f, const char *uid)
{
    for (int i = 0; i < MERGE_STREAMS; i++)
        if (f->of[i].used && !strcmp(f->of[i].uid, uid))
            return &f->of[i];
    return NULL;
}

/* A free number. A pod that exists keeps its own: else its log would be read again. */
static int free_stream(struct feeds *f)
{
    for (int i = 0; i < MERGE_STREAMS; i++)
        if ((!f->of[i].used || (f->of[i].done && f->of[i].gone)) &&
            merge_open(f->merge, i, kube_loop_now_ms(f->session->loop)))
            return i;
    return -1;
}

static bool has_ended(const struct pod *pod)
{
    return pod->training.state == CONTAINER_TERMINATED;
}

void feeds_begin(struct feeds *f, const struct pod *pod, const char *job, bool once)
{
    const size_t job_len = strlen(job);
    const bool has_prefix = !strncmp(pod->name, job, job_len) && pod->name[job_len] == '-';
    const int i = free_stream(f);

    if (i < 0) {
        say("kubectl ptj logs", "pod %s is not shown: logs reads %d logs at once", pod->name, MERGE_STREAMS);
        return;
    }
    struct feed *feed = &f->of[i];
    *feed = (struct feed){.all = f, .stream = i, .once = once, .ended = has_ended(pod), .listed = true};
    snprintf(feed->pod, sizeof(feed->pod), "%s", pod->name);
    snprintf(feed->uid, sizeof(feed->uid), "%s", pod->uid);
    snprintf(feed->container, sizeof(feed->container), "%s", pod->training.name);
    snprintf(feed->label, sizeof(feed->label), "%s", pod->name + (has_prefix ? job_len + 1 : 0));
    feed_begin(feed);
}

bool feeds_update(struct feeds *f, const struct pod *pod)
{
    struct feed *feed = feed_of(f, pod->uid);

    if (!feed)
        return false;
    feed->listed = true;
    feed->ended |= has_ended(pod);
    feed_update(feed);
    return true;
}

static void is_gone(struct feed *feed)
{
    feed->gone = feed->ended = true;
    feed_update(feed);
}

void feeds_gone(struct feeds *f, const char *uid)
{
    struct feed *feed = feed_of(f, uid);

    if (feed)
        is_gone(feed);
}

void feeds_list_begin(struct feeds *f)
{
    for (int i = 0; i < MERGE_STREAMS; i++)
        f->of[i].listed = false;
}

void feeds_list_end(struct feeds *f)
{
    for (int i = 0; i < MERGE_STREAMS; i++)
        if (f->of[i].used && !f->of[i].gone && !f->of[i].listed)
            is_gone(&f->of[i]);
}

bool feeds_done(const struct feeds *f)
{
    for (int i = 0; i < MERGE_STREAMS; i++)
        if (f->of[i].used && !f->of[i].done)
            return false;
    return true;
}

void feeds_release(struct feeds *f)
{
    for (int i = 0; i < MERGE_STREAMS; i++)
        feed_release(&f->of[i]);
}

void feeds_read_out(struct feeds *f)
{
    for (int i = 0; i < MERGE_STREAMS; i++)
        feed_read_out(&f->of[i]);
}

void feeds_close(struct feeds *f)
{
    for (int i = 0; i < MERGE_STREAMS; i++)
        feed_close(&f->of[i]);
}
