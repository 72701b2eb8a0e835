/* feeds.h - the feeds of a job's pods: which pod has which stream of the merge, and which pods are gone. For `kubectl ptj logs`.
 *
 * Ownership: borrows all that is set by the caller; feeds_close cancels what is under way.
 * Errors:    those of feed.h, by the sink; feeds prints to stderr the name of a pod without a stream.
 */
#ifndef TK_CLI_LOGS_FEEDS_H
#define TK_CLI_LOGS_FEEDS_H

#include "cli/logs/feed.h"
#include "operator/api/pod.h"

struct feeds {
    struct session *session;
    struct merge *merge;
    const struct feed_options *options;
    const struct feed_sink *sink;

    /* Internal, by the number of the stream. */
    struct feed of[MERGE_STREAMS];
    char labels[MERGE_STREAMS][DECODE_NAME_BYTES + 1];
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

/* feed.h's for each. */
void feeds_release(struct feeds *f);
void feeds_read_out(struct feeds *f);
void feeds_close(struct feeds *f);

/* The stream's pod, without the job's name where it begins with that. */
const char *feeds_label(const struct feeds *f, int stream);

#endif
