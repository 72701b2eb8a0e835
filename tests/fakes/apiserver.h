/* apiserver.h - a small Kubernetes API server for tests: real HTTP on a random loopback port, faults
 * on demand.
 *
 * It knows objects by path, resourceVersion, uid, generation, the status subresource, merge patch,
 * preconditions, finalizers, label selectors, field selectors of any path, paging, watches with bookmarks and
 * expiry, watches. It does not validate, default, collect garbage,
 * schedule or run anything: tests that need that use a real one.
 * Ownership: what a function returns as char * is freed by the caller.
 * Order:     it runs in a thread of its own; every function may be called at any time.
 */
#ifndef TK_TESTS_FAKES_APISERVER_H
#define TK_TESTS_FAKES_APISERVER_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fake_apiserver;

struct fake_apiserver *fake_apiserver_start(void);

/* At the unix socket `path` instead. */
struct fake_apiserver *fake_apiserver_start_at(const char *path);

/* Without thread and port, for direct.h: everything happens in the caller's thread. */
struct fake_apiserver *fake_apiserver_alone(void);
void fake_apiserver_stop(struct fake_apiserver *s);

/* "http://127.0.0.1:<port>" */
const char *fake_apiserver_url(const struct fake_apiserver *s);

/* A resource besides pods, services, configmaps, events, deployments and leases:
 * ("/apis/batch.example.com/v1", "jobs", "Job"). */
void fake_add_kind(struct fake_apiserver *s, const char *group_version, const char *plural, const char *kind);

/* Pods stay with a deletionTimestamp until fake_remove or a delete with gracePeriodSeconds 0, as under a kubelet. */
void fake_pods_linger(struct fake_apiserver *s, bool linger);

/* Writes of a status lose this field, which the schema of an older CRD lacks. NULL: of none. The string is borrowed. */
void fake_unknown_status(struct fake_apiserver *s, const char *field);

/* Pods that are created lose spec.schedulingGroup, as where the feature gate GenericWorkload is off. */
void fake_drop_groups(struct fake_apiserver *s);

/* The time in timestamps from now on; 0, as at first: the machine's. Ahead: the machine's, so much ahead, which runs on. */
void fake_set_time(struct fake_apiserver *s, int64_t wall_ms);
void fake_set_ahead(struct fake_apiserver *s, int64_t ms);

/* --- objects, without a request being counted; paths as in the API, without query ------------------------ */

/* Create or merge-patch, `status` included; false when the path or the JSON (jsontext.h) is wrong. */
bool fake_put(struct fake_apiserver *s, const char *path, const char *json);

/* From now on the object that is there has a member "raw" of this text, which need not be JSON that anyone reads; NULL: no
 * more. */
bool fake_put_raw(struct fake_apiserver *s, const char *path, const char *raw);
char *fake_get(struct fake_apiserver *s, const char *path);   /* NULL: not there */
bool fake_remove(struct fake_apiserver *s, const char *path); /* at once, whatever its finalizers */
bool fake_delete(struct fake_apiserver *s, const char *path); /* as a user's DELETE */

cJSON *fake_json(struct fake_apiserver *s, const char *path); /* the same as a tree; cJSON_Delete */

/* Grows with every change. */
uint64_t fake_version(struct fake_apiserver *s);

/* How many objects a collection has: "/api/v1/pods" or "/api/v1/namespaces/ns/pods". */
int fake_count(struct fake_apiserver *s, const char *collection);

/* The n-th (from 0, by name) object of a collection. */
cJSON *fake_nth_json(struct fake_apiserver *s, const char *collection, int n);

struct fake_change {
    char type; /* '+' added, '-' removed, '=' modified */
    const char *kind;
    const cJSON *object; /* after it; of a removal: before it */
};

/* The i-th (from 0) change since the beginning, false beyond the end. What it points to lives as long as the server. */
bool fake_change_at(struct fake_apiserver *s, int i, struct fake_change *ret);

/* --- logs of pods; paths as those of their objects ------------------------------------------------------ */

/* Whole lines, each with its time in front as the server gives it: "2026-01-01T00:00:00.5Z text\n". A pod that printed nothing has
 * not started: a request for its log is answered with 400. */
void fake_pod_prints(struct fake_apiserver *s, const char *path, const char *lines);
void fake_pod_log_ends(struct fake_apiserver *s, const char *path);        /* a follower's request ends */
void fake_pod_log_begins_anew(struct fake_apiserver *s, const char *path); /* of a new pod of that name */
void fake_cut_pod_logs(struct fake_apiserver *s); /* the connections of all that are followed close */
int fake_open_pod_logs(struct fake_apiserver *s); /* how many are followed */

/* --- faults ------------------------------------------------------------------------------------------- */

enum fake_fault {
    FAKE_STATUS,       /* answer with `status`, without effect */
    FAKE_DROP_BEFORE,  /* close the connection without effect and without an answer */
    FAKE_DROP_AFTER,   /* do it, then close without an answer */
    FAKE_HANG_BEFORE,  /* never answer */
    FAKE_HANG_AFTER,   /* do it, never answer */
    FAKE_RESET_BODY,   /* do it, then close in the middle of the body */
    FAKE_STALL_BODY,   /* carry it out, then stop in the middle of the body */
    FAKE_GARBAGE_BODY, /* do it, then answer 200 with half of the JSON (an orderly end there) */
    FAKE_DRIP_BODY,    /* do it, then answer with 64 bytes a second (direct.h only) */
    FAKE_LATE_BODY,    /* do it, and answer 3 s later with what was true then (direct.h only) */
    FAKE_NOTHING,      /* only counted */
};

struct fake_fault_plan {
    int request;           /* the n-th request from now, counted from 1; 0: every one that fits */
    const char *method;    /* NULL: any. "WATCH" and "LIST" differ from GET here */
    const char *path_part; /* NULL: any */
    bool writes;           /* only those that change something, and no leases */
    enum fake_fault fault;
    int status;           /* FAKE_STATUS */
    bool text;            /* FAKE_STATUS: `message` in plain text, as by a proxy in front of the server */
    int retry_after_s;    /* FAKE_STATUS; 0: no header */
    const char *location; /* FAKE_STATUS; NULL: no header */
    const char *message;  /* FAKE_STATUS; NULL: that a fault was requested */
};

/* Replaces the plan before it; strings are borrowed until the next one. NULL: no more faults. */
void fake_plan_fault(struct fake_apiserver *s, const struct fake_fault_plan *plan);
/* The next such request; all such requests, with this status. */
void fake_strike(struct fake_apiserver *s, const char *method, const char *path_part, enum fake_fault fault);
void fake_refuse(struct fake_apiserver *s, const char *method, const char *path_part, int status);
int fake_faults_done(struct fake_apiserver *s); /* how often the present plan struck */
int fake_fault_last(struct fake_apiserver *s);  /* the request in the log that was struck last; -1: none */

/* The watches of a kind (its plural) say nothing newer than the state before its last `lag` changes, until NULL is frozen: a
 * server, or a cache before it, that fell behind. Lists and single objects are read as they are, as from etcd; leases are not
 * even that. Writes take effect. */
void fake_freeze(struct fake_apiserver *s, const char *plural, int lag);

void fake_compact(struct fake_apiserver *s);       /* every resourceVersion up to now is expired */
void fake_bookmark(struct fake_apiserver *s);      /* one for each watch that requested them */
void fake_close_watches(struct fake_apiserver *s); /* an orderly end of each */
void fake_watch_raw(struct fake_apiserver *s, const char *bytes); /* these bytes into each watch */
int fake_open_watches(struct fake_apiserver *s);
int fake_connections(struct fake_apiserver *s); /* how many came, ever */

/* --- the requests --- --------------------------------------------------------------------------------- */

struct fake_request {
    char method[8];          /* as in fake_fault_plan */
    char path[1024];         /* with its query */
    char authorization[128]; /* the header's value, "" when there was none */
    char *body;              /* "" when there was none; lives until fake_log_clear */
    int status;              /* 0: no answer was sent */
    bool changed;            /* something is otherwise since then */
    int64_t at_s;            /* the server's time */
    int retry_after_s;       /* that the answer requested; 0: no such header */
    int client;              /* whose it was, from 1; 0: it came over a socket */
};

/* Returns when the server has carried out what was sent to it before the call and has written all its answers: what a
 * loaded machine makes late is not taken for silence. */
void fake_settle(struct fake_apiserver *s);

/* A request is in the log once it was carried out. False beyond the end. */
bool fake_log_at(struct fake_apiserver *s, int i, struct fake_request *ret);
int fake_log_count(struct fake_apiserver *s, const char *method, const char *path_part); /* NULL: any */

/* Whether it was to change something, and no lease. */
bool fake_log_is_write(struct fake_apiserver *s, int i);
void fake_log_clear(struct fake_apiserver *s);

#endif
