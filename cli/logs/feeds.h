/* feeds.h - the feeds of a job's pods: each reads the log of one container, over breaks and lost servers, into a stream of a merge.
 * For `kubectl ptj logs`.
 *
 * A feed reads the lines that exist to their end, then it follows the log. After the container has ended, or with `once`, it sends
 * one more request, which ends the feed: so no line is lost between the last one and the end. When the pod is deleted, the feed waits
 * for the answer that is under way through silences of 5 s, and for FEEDS_GONE_MS in all, not counting the time in which the merge or
 * the reader of our output held it up; it leaves out what comes later, and reports that.
 *
 * Ownership: borrows session and merge; feeds_close cancels what is under way.
 * Errors:    only a missing permission is fatal; after all others a feed tries again, with backoff. feeds prints them to stderr, and
 *            the name of a pod without a stream.
 */
#ifndef TK_CLI_LOGS_FEEDS_H
#define TK_CLI_LOGS_FEEDS_H

#include "cli/logs/merge.h"
#include "cli/podlog.h"
#include "common/backoff.h"
#include "operator/api/decode.h"
#include "operator/api/pod.h"

struct feeds;

enum { FEEDS_GONE_MS = 60000 };

struct feed {
    struct feeds *all;
    char pod[DECODE_NAME_BYTES + 1], uid[DECODE_UID_BYTES + 1], container[DECODE_LABEL_BYTES + 1];
    char label[DECODE_NAME_BYTES + 1]; /* the pod, without the job's name where it begins with that */
    int stream;                        /* of the merge */
    bool used, done;
    bool failed; /* it gave up */
    bool once;   /* not to be followed */
    bool ended;  /* the container has ended */
    bool gone;   /* the pod does not exist any more */

    /* Internal. */
    bool listed;
    struct kube_transfer *transfer;
    bool final, live, held, has_read, got_bytes;
    int failures, quiet;
    struct backoff backoff;
    bool counting; /* since the pod is gone: */
    int64_t counted_ms, rest_ms;
    struct kube_loop_timer again;
};

struct feeds {
    struct session *session;
    struct merge *merge;
    int64_t tail, since_s; /* as in podlog.h */
    int64_t blocked_ms;    /* for so long, in all, the process waited for the reader of its output */
    void *ctx;
    void (*moved)(void *ctx, struct feed *f); /* bytes came, or it is done */
    void (*fatal)(void *ctx, const struct err *err);

    struct feed of[MERGE_STREAMS]; /* by the number of the stream */
};

/* Read the log of a pod of this job; `once`: without following it. */
void feeds_begin(struct feeds *f, const struct pod *pod, const char *job, bool once);

/* The state of a pod whose log is read, or was. False: it never was. */
bool feeds_update(struct feeds *f, const struct pod *pod);

/* What feeds_update did not name between these two is gone; so is the pod of this UID. */
void feeds_list_begin(struct feeds *f);
void feeds_list_end(struct feeds *f);
void feeds_gone(struct feeds *f, const char *uid);

bool feeds_done(const struct feeds *f); /* none is being read */

/* Let those go on whose stream has room again. */
void feeds_release(struct feeds *f);

/* Follow them no longer: what they have by now is read, then they are done. */
void feeds_read_out(struct feeds *f);

/* No more lines of them. */
void feeds_close(struct feeds *f);

#endif
