/* feed.h - read the log of one container, over breaks and lost servers, into a stream of a merge. For `kubectl ptj logs`.
 *
 * The feed reads the lines that exist to their end, then it follows the log. After the container has ended, or with `once`, it sends
 * one more request, which ends the feed: so no line is lost between the last one and the end. When the pod is deleted, the feed waits
 * for the answer that is under way through silences of 5 s, and for FEED_GONE_MS in all, not counting the time in which the merge or
 * the reader of our output held it up; it leaves out what comes later, and reports that.
 *
 * Ownership: borrows session and merge. feed_close cancels what is under way.
 * Errors:    only a missing permission is fatal; after all others the feed tries again, with backoff.
 */
#ifndef TK_CLI_LOGS_FEED_H
#define TK_CLI_LOGS_FEED_H

#include "cli/logs/merge.h"
#include "cli/podlog.h"
#include "common/backoff.h"
#include "operator/api/decode.h"

struct feed;

enum { FEED_GONE_MS = 60000 };

struct feed_sink {
    void *ctx;
    int64_t blocked_ms; /* for so long, in all, the process waited for the reader of its output */
    void (*moved)(void *ctx, struct feed *f); /* bytes came, or it is done */
    void (*trouble)(void *ctx, struct feed *f, const struct err *err);
    void (*fatal)(void *ctx, const struct err *err);
};

struct feed_options {
    int64_t tail, since_s; /* as in podlog.h */
};

struct feed {
    struct session *session;
    struct merge *merge;
    const struct feed_options *options;
    const struct feed_sink *sink;
    char pod[DECODE_NAME_BYTES + 1], uid[DECODE_UID_BYTES + 1], container[DECODE_LABEL_BYTES + 1];
    int stream; /* of the merge */
    bool used, done;
    bool failed; /* it gave up */
    bool once;   /* not to be followed */
    bool ended;  /* the container has ended */
    bool gone;   /* the pod does not exist any more */
    bool listed; /* the caller's */

    /* Internal to feed.c. */
    struct kube_transfer *transfer;
    bool final, live, held, has_read, got_bytes;
    int failures, quiet;
    struct backoff backoff;
    bool counting; /* since the pod is gone: */
    int64_t counted_ms, rest_ms;
    struct kube_loop_timer again;
};

/* f->session to f->container, stream and once are set. */
void feed_begin(struct feed *f);

/* After a change of ended, gone or once. */
void feed_update(struct feed *f);

/* Follow it no longer: what it has by now is read, then it is done. */
void feed_read_out(struct feed *f);

/* Let it go on if its stream has room again. */
void feed_release(struct feed *f);

/* No more lines of it. */
void feed_close(struct feed *f);

#endif
