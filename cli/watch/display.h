/* display.h - the screen of `kubectl ptj watch`: draws the board when it has changed, a few times a second at most, takes keys,
 * and follows resizing, stopping and going on.
 *
 * Ownership: borrows everything it is given; display_end gives the terminal back.
 */
#ifndef TK_CLI_WATCH_DISPLAY_H
#define TK_CLI_WATCH_DISPLAY_H

#include "cli/watch/paint.h"
#include "cli/watch/tty.h"
#include "kube/loop.h"

enum {
    DISPLAY_FRAME_MS = 250,      /* between two frames */
    DISPLAY_BACKGROUND_MS = 500, /* in the background: between two looks whether it still is */
    DISPLAY_TICK_MS = 15000,     /* ages grow by whole minutes: looked at so often */
    DISPLAY_NOTE_BYTES = 600,
};

struct display {
    struct kube_loop *loop;
    const struct board *board;
    struct table table;
    char note[DISPLAY_NOTE_BYTES]; /* "": nothing is wrong */
    void (*quit)(void *ctx);       /* q, or the terminal is gone */
    void *ctx;

    /* Internal. */
    struct tty tty;
    struct paint paint;
    struct kube_loop_timer frame, tick;
    struct kube_loop_fd keys;
    bool reads_keys, hung_up;
    bool begun; /* a frame was due */
    int64_t drawn_ms;
};

/* Set loop, board, table.what, table.with_ns, quit and ctx before. */
void display_begin(struct display *d);

/* Something that is shown has changed. */
void display_changed(struct display *d);

/* SIGWINCH, SIGTSTP or SIGCONT came. */
void display_signal(struct display *d, int signal);

/* Leave the last frame, without its hint on keys, on the screen as it was before. `complete`: what was to be shown is on the
 * board; then that is left even where it ended before the first frame. */
void display_end(struct display *d, bool complete);

#endif
