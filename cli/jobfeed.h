/* jobfeed.h - follow the jobs of a namespace, or one of them, the events about them and the pods of one, for verbs
 * that watch. jobfeed reconnects to a lost server until it answers.
 *
 * A reflector waits up to a minute between tries, and after a short loss it resumes a watch on which nothing need come for as long:
 * the server could be back unnoticed. So jobfeed begins a new list after a loss, which shows it at once.
 *
 * Ownership: borrows the session and the strings of the options but the name. Objects given to callbacks are borrowed for the call.
 * Units:     milliseconds since the Unix epoch.
 * Errors:    `failed` is called, once, when jobs or pods cannot be listed at the first time: the feed has stopped then. Later
 *            failures are reported by `state`, and retried every 5 s at most. Events that cannot be read, also for a
 *            missing permission, are left out.
 * Order:     list_begin, object for each, list_end; then object and removed as they happen. After a lost server the list comes
 *            again. Events come after the first list_end of the jobs. Pods come in no order with jobs.
 */
#ifndef TK_CLI_JOBFEED_H
#define TK_CLI_JOBFEED_H

#include "cli/session.h"

enum {
    JOBFEED_LATE_MS = 2000, /* a server that has not answered after so long is slow, unless session_may_ask */
    JOBFEED_RETRY_MS =
        500, /* after the first failure, which is not reported yet; then twice as long each time */
    JOBFEED_RETRY_MAX_MS = 5000,
    JOBFEED_GOOD_MS = 10000, /* a connection that lasted so long was good: the next failure is a first one */
};

/* What becomes of a collection. NULL: it is passed over. */
struct jobfeed_sink {
    void (*list_begin)(void *ctx);
    void (*list_end)(void *ctx);
    void (*object)(void *ctx, const cJSON *object);
    void (*removed)(void *ctx,
                    const cJSON *object); /* as it was; of a job perhaps no more than its metadata */
};

struct jobfeed_trouble {
    int64_t since_ms; /* since when the server is lost, or has not answered the first list; 0: neither */
    char why[240];    /* safe to print, as `events`; "" for a server that only has not answered yet */
    char events[240]; /* why there are no events; "": there are */
};

struct jobfeed_options {
    struct session *session;
    const char *ns;             /* NULL: all namespaces */
    const char *name;           /* NULL: all jobs */
    const char *label_selector; /* NULL: all jobs */
    struct jobfeed_sink jobs;
    const struct jobfeed_sink *events; /* about the jobs; NULL: none */
    const struct jobfeed_sink *pods;   /* with the job's label; NULL: none; only with a name */
    void (*state)(void *ctx, const struct jobfeed_trouble *trouble); /* it has changed; may be NULL */
    void (*failed)(void *ctx, const struct err *err);
    void *ctx;
};

struct jobfeed;

struct jobfeed *jobfeed_new(const struct jobfeed_options *options);
void jobfeed_free(struct jobfeed *f);

/* List the pods again: what comes next of them is list_begin, and no state that is older than this call. Not from a callback about
 * pods. */
void jobfeed_list_pods(struct jobfeed *f);

#endif
