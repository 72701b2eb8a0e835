/* gather.h - collect one JSON object from a stream: kept as text up to a limit, beyond it only skimmed
 * (skim.h). Pure.
 *
 * Ownership: gather_release frees all. An object is borrowed for the callback, which may take what was
 *            skimmed.
 * Errors:    ERR_INVALID beyond GATHER_MAX_BYTES: no object is that long, so the stream has lost its framing.
 * Order:     gather_init; then for each object gather_add and gather_end, or gather_lines for all of them.
 */
#ifndef TK_KUBE_GATHER_H
#define TK_KUBE_GATHER_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "kube/skim.h"

/* etcd stores 1.5 MiB per object. JSON's escapes can make it six times as long, and managedFields repeat its
 * field names. */
enum { GATHER_MAX_BYTES = 64 << 20 };

struct gather {
    struct buf text;
    bool event; /* see skim_init */
    bool over;  /* over the limit of text: only skim is fed */
    size_t bytes;
    struct skim skim;
};

/* Gets one object; or, for one over the limit, an empty `text` and what was skimmed of it. -1 (with *err set)
 * is what gather_end then returns. */
typedef int gather_on_object(void *ctx, struct sv text, struct skim *over, struct err *err);

void gather_init(struct gather *g, size_t text_max_bytes, bool event);
int gather_add(struct gather *g, struct sv bytes, struct err *err) MUST_CHECK;

/* Add the last bytes, give the object out and forget it. One that lies in `bytes` is not copied; a '\r' at its
 * end is cut off, and an empty one is skipped. */
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
