/* gather.h - collect one JSON object from a stream: as text up to a limit, beyond it only its names (skim.h). watcher.c
 * calls gather_lines for the lines of a watch, items.c gather_end for the items of a list. Pure.
 *
 * Ownership: gather_release frees all. The callback borrows the object, and may take the skimmed names.
 * Errors:    ERR_INVALID beyond GATHER_MAX_BYTES: no object is that long, so the stream has lost its framing.
 * Order:     gather_init; then for each object gather_add and gather_end, or gather_lines for all of them.
 */
#ifndef TK_KUBE_GATHER_H
#define TK_KUBE_GATHER_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "kube/skim.h"

/* etcd stores 1.5 MiB per object. JSON escapes can make it six times as long, and managedFields repeats its
 * field names. */
enum { GATHER_MAX_BYTES = 64 << 20 };

struct gather {
    struct buf text;
    bool event; /* see skim_init */
    bool over;  /* over the limit of text: only skim receives the bytes */
    size_t bytes;
    struct skim skim;
};

/* Receives one object. Within the limit of text: `text` is the object, and `over` is NULL. Over it: `text` is empty, and
 * `over` has the object's names. gather_end returns the callback's result. */
typedef int gather_on_object(void *ctx, struct sv text, struct skim *over, struct err *err);

void gather_init(struct gather *g, size_t text_max_bytes, bool event);
int gather_add(struct gather *g, struct sv bytes, struct err *err) MUST_CHECK;

/* Add the last bytes, pass the object to the callback and forget it. An object that lies in `bytes` is not
 * copied. A '\r' at its end is removed, and an empty object is skipped. */
int gather_end(struct gather *g, struct sv bytes, gather_on_object *on_object, void *ctx,
               struct err *err) MUST_CHECK;

/* Each line, without its '\n', is an object. */
int gather_lines(struct gather *g, struct sv bytes, gather_on_object *on_object, void *ctx,
                 struct err *err) MUST_CHECK;

/* Forget the object. The memory of a large one is freed: objects that span several pieces are rare and may be
 * megabytes. */
void gather_reset(struct gather *g);
void gather_release(struct gather *g);

#endif
