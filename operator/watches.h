/* watches.h - the operator's local copies: jobs, and the pods, Services and Deployments that carry our label.
 *
 * Ownership: owns stores and reflectors; borrows loop and transport.
 * Order:     every change is told as the UID of the job it concerns, never from inside another callback of
 *            ours.
 */
#ifndef TK_OPERATOR_WATCHES_H
#define TK_OPERATOR_WATCHES_H

#include "kube/reflector.h"
#include "kube/store.h"
#include "operator/plan/plan.h"

struct watches;

struct watches_sink {
    void *ctx;
    void (*changed)(void *ctx, const char *job_uid);
    void (*problem)(void *ctx, const char *what, const struct err *err);
    void (*job_gone)(void *ctx, const char *job_uid);
};

struct watches *watches_new(struct loop *l, const struct transport *t, const char *ns, uint64_t seed,
                            const struct watches_sink *sink);
void watches_start(struct watches *w);
void watches_free(struct watches *w);

bool watches_synced(const struct watches *w);

/* When the watch that is furthest behind last heard of the server, monotonic ms. */
int64_t watches_progress_ms(const struct watches *w);

/* NULL when there is none. */
const struct trainjob *watches_job(const struct watches *w, const char *uid);

/* A job read live takes the place of the cached one. */
void watches_put_job(struct watches *w, const cJSON *object);

/* For store_group: children by the UID of their controller. */
const struct store *watches_children(const struct watches *w, enum child_kind kind);

struct watches_counts {
    size_t jobs, pods, services, deployments;
    struct watcher_stats reflectors[4];
};
struct watches_counts watches_counts(const struct watches *w);

static inline void watches_freep(struct watches **w)
{
    watches_free(*w);
}
#define cleanup_watches __attribute__((cleanup(watches_freep)))

#endif
