/* gather.h - one JSON object as it arrives: kept as text up to a limit, only skimmed beyond it. Pure.
 *
 * Ownership: gather_release frees the text. What gather_end returns is borrowed until gather_reset.
 * Errors:    ERR_INVALID beyond GATHER_MAX_BYTES: no object is so long, the stream lost its framing.
 * Order:     gather_init; then gather_add, gather_end and gather_reset for each object.
 */
#ifndef TK_KUBE_GATHER_H
#define TK_KUBE_GATHER_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "kube/skim.h"

/* etcd holds 1.5 MiB, which JSON's escapes make six times as much, and managedFields say the names once more. */
enum { GATHER_MAX_BYTES = 64 << 20 };

struct gather {
    struct buf text;
    bool event; /* see skim_init */
    bool over;  /* it is skimmed */
    size_t bytes;
    struct skim skim;
};

void gather_init(struct gather *g, size_t text_max_bytes, bool event);
int gather_add(struct gather *g, struct sv bytes, struct err *err) MUST_CHECK;

/* These are the last bytes. *ret is the whole text, where it lies if it came in one piece; or else it is empty and
 * *ret_over says what was skimmed. */
int gather_end(struct gather *g, struct sv bytes, struct sv *ret, const struct skim **ret_over,
               struct err *err) MUST_CHECK;

/* Nothing was added yet. */
static inline bool gather_is_empty(const struct gather *g)
{
    return g->bytes == 0;
}

/* Forget what was added. Objects that span pieces are rare and may be megabytes: their memory is not kept. */
void gather_reset(struct gather *g);
void gather_release(struct gather *g);

#endif
