/* fuzz_skim.h - what was skimmed, as text to compare. */
#ifndef TK_TESTS_FUZZ_FUZZ_SKIM_H
#define TK_TESTS_FUZZ_FUZZ_SKIM_H

#include "fuzz.h"

#include "common/json.h"
#include "kube/skim.h"

static inline int skim_append(const struct skim *s, struct buf *out, struct err *err)
{
    const size_t before = out->len;

    MUST(json_write(s->tree, out, err) == 0);
    MUST(out->len - before < 8192); /* whatever the text was */
    return buf_printf(out, err, " %d\n", skim_complete(s));
}

#endif
