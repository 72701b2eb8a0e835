/* gather.h - collect one JSON object from a stream: kept as text up to a limit, beyond it only skimmed
 * (skim.h). Pure.
 *
 * Ownership: gather_release frees the text. What gather_end returns is valid until gather_reset.
 * Errors:    ERR_INVALID beyond GATHER_MAX_BYTES: no object is that long, so the stream has lost its framing.
 * Order:     gather_init; then gather_add, gather_end and gather_reset for each object.
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

void gather_init(struct gather *g, size_t text_max_bytes, bool event);
int gather_add(struct gather *g, struct sv bytes, struct err *err) MUST_CHECK;

/* Add the last bytes. *ret is the whole text; it points into `bytes` if nothing was added before. Over the
 * limit *ret is empty and *ret_over is what was skimmed; otherwise *ret_over is NULL. */
int gather_end(struct gather *g, struct sv bytes, struct sv *ret, const struct skim **ret_over,
               struct err *err) MUST_CHECK;

/* Nothing was added yet. */
static inline bool gather_is_empty(const struct gather *g)
{
    return g->bytes == 0;
}

/* Forget the object. The memory of a large one is freed: objects that span several pieces are rare and may be
 * megabytes. */
void gather_reset(struct gather *g);
void gather_release(struct gather *g);

#endif
