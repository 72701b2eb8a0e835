/* keys.h - the keys of `kubectl ptj watch`, from the bytes that a terminal sends. Pure. */
#ifndef TK_CLI_WATCH_KEYS_H
#define TK_CLI_WATCH_KEYS_H

#include "common/sv.h"

enum key {
    KEY_OTHER, /* one that has no meaning here */
    KEY_UP,    /* arrow, k */
    KEY_DOWN,  /* arrow, j */
    KEY_WHY,   /* Enter, w */
    KEY_LOGS,  /* l */
    KEY_QUIT,  /* q */
    KEY_ESCAPE,
};

/* Take the next key off the bytes, of which there are some. A sequence that the end of the bytes cuts counts as Escape. */
enum key keys_next(struct sv *bytes);

#endif
