/* tamper.h - for direct.c: send a watch the events that are due, and falsify the chosen one (struct fake_tamper). */
#ifndef TK_TESTS_FAKES_TAMPER_H
#define TK_TESTS_FAKES_TAMPER_H

#include "tests/fakes/direct.h"
#include "tests/fakes/server.h"

/* A stream that is silent for a while. */
struct tamper_hold {
    int64_t until_ms; /* 0: it is not held */
    bool merging;
};

/* t NULL: nothing is struck. */
void tamper_pump(struct fake_apiserver *s, struct conn *c, struct fake_tamper *t, struct tamper_hold *h,
                 int64_t now_ms);

#endif
