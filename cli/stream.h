/* stream.h - one collection as it is now and changes, listed again after a lost connection. For jobfeed.c.
 *
 * A reflector waits up to a minute between tries, and after a short loss it resumes a watch on which nothing need come for as long:
 * the server could be back unnoticed. A new list shows it at once.
 *
 * Ownership: borrows session and strings; stream_end frees the reflector.
 * Units:     failed_ms: since the Unix epoch; synced_ms: monotonic.
 */
#ifndef TK_CLI_STREAM_H
#define TK_CLI_STREAM_H

#include "cli/session.h"
#include "kube/reflector.h"

enum {
    STREAM_RETRY_MS =
        500, /* after the first failure, which is not reported yet; then twice as long each time */
    STREAM_RETRY_MAX_MS = 5000,
    STREAM_GOOD_MS = 10000, /* a connection that lasted so long was good: the next failure is a first one */
};

struct stream {
    struct session *session;
    void *owner;
    struct kube_request what; /* for messages */

    int failures;      /* in a row */
    int64_t failed_ms; /* when the first failure since the last list happened; 0: none did */
    bool lost;         /* it failed again after a first failure, and no list came since */
    bool synced;       /* a list was complete, ever */

    /* Internal. */
    struct kube_watcher_options options;
    struct watcher_sink sink;
    struct reflector *reflector;
    struct kube_loop_task drop; /* a reflector is not freed inside its own callback */
    struct kube_loop_timer again;
    int64_t synced_ms; /* the last time */
};

/* `what`: the collection with its selectors. The stream is the context of the sink's callbacks. */
void stream_init(struct stream *s, struct session *session, void *owner, const struct kube_request *what,
                 const struct watcher_sink *sink);
void stream_begin(struct stream *s);
void stream_begin_later(struct stream *s, int64_t delay_ms);
void stream_end(struct stream *s); /* not inside its own callback */

/* For replace_end and for problem. After a failure before the first list it is over; else it begins again by itself. */
void stream_found(struct stream *s);
void stream_failed(struct stream *s);

#endif
