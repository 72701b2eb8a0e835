/* fuzz_skim.h - what was skimmed, as text to compare. */
#ifndef TK_TESTS_FUZZ_FUZZ_SKIM_H
#define TK_TESTS_FUZZ_FUZZ_SKIM_H

#include "fuzz.h"

#include "common/buf.h"
#include "kube/skim.h"

#include <string.h>

static inline int skim_append(const struct skim *s, struct buf *out, struct err *err)
{
    MUST(strlen(s->name) < SKIM_NAME_BYTES && strlen(s->uid) < SKIM_UID_BYTES);
    return buf_printf(out, err, "%d %s %s %s %s %s %s %d %s\n", skim_complete(s), s->type, s->ns, s->name,
                      s->uid, s->version, s->reason, s->controller.controller, s->controller.uid);
}

#endif
