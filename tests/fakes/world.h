/* world.h - the objects of the fake API server and what requests do to them. No sockets, no threads. */
#ifndef TK_TESTS_FAKES_WORLD_H
#define TK_TESTS_FAKES_WORLD_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kind {
    char prefix[128]; /* "/api/v1" */
    char plural[64];
    char name[64];
};

struct object {
    const struct kind *kind;
    char *ns, *name;
    cJSON *json;
};

/* One change; `before` NULL: added; `after` NULL: deleted (then `before` carries the last resourceVersion). */
struct change {
    uint64_t version;
    const struct kind *kind;
    cJSON *before, *after;
};

enum { KINDS_MAX = 32 };

struct world {
    struct kind kinds[KINDS_MAX];
    size_t n_kinds;
    struct object *objects; /* by kind, namespace, name */
    size_t n_objects, cap_objects;
    struct change *changes; /* since the beginning */
    size_t n_changes, cap_changes;
    uint64_t version, oldest; /* watches from before `oldest` are expired */
    uint64_t uids;
    bool pods_linger, drops_groups;
    const char *unknown_status; /* a field of every status that the schema lacks; NULL: none */
    int64_t now_s;              /* 0: the machine's clock, */
    int64_t ahead_ms;           /* so much ahead */
};

/* A request's target. */
struct route {
    const struct kind *kind;
    char ns[256], name[256], sub[64]; /* "": not given */
    char labels[1024], fields[1024], version[32], more[512];
    int limit;
    bool watch, bookmarks;
    bool apply; /* server-side, with force */
};

struct outcome {
    int status;
    cJSON *body; /* owned by the caller */
};

void world_init(struct world *w);
void world_release(struct world *w);
void world_add_kind(struct world *w, const char *prefix, const char *plural, const char *name);

/* False: no such resource. `target` is path?query. */
bool world_route(const struct world *w, const char *target, struct route *ret);

/* What the server serves of a group and version: "/apis/apps/v1". False: it knows none. */
bool world_resources(const struct world *w, const char *prefix, struct outcome *ret);

/* Everything but watches. */
struct outcome world_do(struct world *w, const char *method, const struct route *r, const cJSON *body);

struct object *world_find(const struct world *w, const struct kind *k, const char *ns, const char *name);
void world_remove(struct world *w, struct object *o);

/* Make a change of another world here, too: the same object, of the same version. No line of history. */
void world_repeat(struct world *w, const struct change *c);
bool world_matches(const struct route *r, const cJSON *object);

/* Its time, in seconds since 1970. */
int64_t world_now_s(const struct world *w);

struct outcome world_error(int status, const char *reason, const char *message);

#endif
