/* jobfeed.h - follow the jobs of a namespace, or one of them, the events about them and the pods of one, for verbs
 * that watch. jobfeed reconnects to a lost server until it answers.
 *
 * Ownership: borrows the session and all strings of the options. Objects given to callbacks are borrowed for the call.
 * Units:     milliseconds since the Unix epoch.
 * Errors:    `failed` is called, once, when jobs or pods cannot be listed at the first time: the feed has stopped then. Later
 *            failures are reported by `state`, and retried every 5 s at most. Events that cannot be read, also for a
 *            missing permission, are left out.
 * Order:     list_begin, job for each, list_end; then job and removed as they happen. After a lost server the list comes
 *            again. Events come after the first list_end. Pods come as jobs do, in no order with them.
 */
#ifndef TK_CLI_JOBFEED_H
#define TK_CLI_JOBFEED_H

#include "cli/session.h"

enum {
    JOBFEED_LATE_MS = 2000, /* a server that has not answered after so long is slow, unless session_may_ask */
};

struct jobfeed_pods {
    void (*list_begin)(void *ctx);
    void (*list_end)(void *ctx);
    void (*pod)(void *ctx, const cJSON *pod);
    void (*removed)(void *ctx, const cJSON *pod); /* as it was */
};

struct jobfeed_options {
    struct session *session;
    const char *ns;             /* NULL: all namespaces */
    const char *name;           /* NULL: all jobs */
    const char *label_selector; /* NULL: all jobs */
    bool events;
    const struct jobfeed_pods *pods; /* those with the job's label; NULL: none; only with a name */
    void (*list_begin)(void *ctx);
    void (*list_end)(void *ctx);
    void (*job)(void *ctx, const cJSON *job);
    void (*removed)(void *ctx, const char *ns, const char *name);
    void (*event)(void *ctx, const cJSON *event); /* may be NULL without `events` */
    void (*state)(void *ctx);                     /* jobfeed_trouble has changed */
    void (*failed)(void *ctx, const struct err *err);
    void *ctx;
};

struct jobfeed;

struct jobfeed *jobfeed_new(const struct jobfeed_options *options);
void jobfeed_free(struct jobfeed *f);

/* List the pods again: what comes next of them is list_begin, and no state that is older than this call. Not from a callback of
 * struct jobfeed_pods. */
void jobfeed_list_pods(struct jobfeed *f);

struct jobfeed_trouble {
    int64_t since_ms; /* since when the server is lost, or has not answered the first list; 0: neither */
    char why[240];    /* safe to print, as `events`; "" for a server that only has not answered yet */
    char events[240]; /* why there are no events; "": there are */
};
const struct jobfeed_trouble *jobfeed_trouble(const struct jobfeed *f);

#endif
