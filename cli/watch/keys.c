/* keys.c - recognise keys in the bytes of a terminal. */
#include "cli/watch/keys.h"

enum { ESC = 0x1b };

/* ESC [ ... to its final byte, or ESC O and one byte. */
static enum key take_sequence(struct sv *bytes)
{
    size_t n = 2;

    while (bytes->p[1] == '[' && n < bytes->len && (unsigned char)bytes->p[n] < 0x40)
        n++;
    const char last = n < bytes->len ? bytes->p[n] : 0;
    *bytes = sv_skip(*bytes, n < bytes->len ? n + 1 : n);
    return n == 2 && last == 'A' ? KEY_UP : n == 2 && last == 'B' ? KEY_DOWN : last ? KEY_OTHER : KEY_ESCAPE;
}

enum key keys_next(struct sv *bytes)
{
    const char c = bytes->p[0];

    if (c == ESC && bytes->len > 1 && (bytes->p[1] == '[' || bytes->p[1] == 'O'))
        return take_sequence(bytes);
    *bytes = sv_skip(*bytes, 1);
    switch (c) {
    case ESC:
        return KEY_ESCAPE;
    case '\r':
    case '\n':
    case 'w':
        return KEY_WHY;
    case 'l':
        return KEY_LOGS;
    case 'q':
    case 'Q':
        return KEY_QUIT;
    case 'k':
        return KEY_UP;
    case 'j':
        return KEY_DOWN;
    default:
        return KEY_OTHER;
    }
}
