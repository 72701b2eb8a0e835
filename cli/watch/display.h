/* display.h - the screen of `kubectl ptj watch`: draws the table of jobs, or a page of text, when it has changed, a few times a
 * second at most; takes keys, and follows resizing, stopping and going on.
 *
 * Ownership: borrows everything it is given; display_end gives the terminal back.
 */
#ifndef TK_CLI_WATCH_DISPLAY_H
#define TK_CLI_WATCH_DISPLAY_H

#include "cli/watch/keys.h"
#include "cli/watch/paint.h"
#include "cli/watch/tty.h"
#include "kube/loop.h"

enum {
    DISPLAY_FRAME_MS = 250,      /* between two frames */
    DISPLAY_KEY_MS = 30,         /* the same after a key */
    DISPLAY_BACKGROUND_MS = 500, /* in the background: between two checks whether it still is */
    DISPLAY_TICK_MS = 15000,     /* between two checks whether an age, of whole minutes, has grown */
    DISPLAY_NOTE_BYTES = 600,
};

struct display {
    struct kube_loop *loop;
    const struct board *board;
    struct table table;
    char note[DISPLAY_NOTE_BYTES]; /* what is wrong; "": nothing is */
    /* A key was pressed, but for those that move in the table or text. KEY_QUIT also when the terminal is gone. */
    void (*key)(void *ctx, enum key key);
    /* A page instead of the table: append its lines for a screen of this size, and return the hint on keys. NULL: the table. */
    const char *(*text)(void *text_ctx, int columns, int rows, struct buf *out);
    void *ctx, *text_ctx;

    /* Internal. */
    struct tty tty;
    struct paint paint;
    struct kube_loop_timer frame, tick;
    struct kube_loop_fd keys;
    bool reads_keys, hung_up;
    bool begun; /* a frame was due */
    int64_t drawn_ms;
    int scroll; /* lines of the text above the screen */
    int row;    /* of the selected job */
    char ns[sizeof(((struct board_job *)0)->ns)], name[sizeof(((struct board_job *)0)->name)]; /* its names */
};

/* Set loop, board, table.what, table.with_ns, key and ctx before. */
void display_begin(struct display *d);

/* Something that is shown has changed. */
void display_changed(struct display *d);

/* SIGWINCH, SIGTSTP or SIGCONT came. */
void display_signal(struct display *d, int signal);

/* The selected job; NULL: there is none. */
const struct board_job *display_selected(struct display *d);

/* Show this page from its first line; NULL: the table. */
void display_text(struct display *d,
                  const char *(*text)(void *text_ctx, int columns, int rows, struct buf *out),
                  void *text_ctx);

/* Leave the normal screen to others, who write to it, or take the terminal again. Keys come all the time. */
void display_hide(struct display *d, bool hidden);

/* Leave the last table, without its hint on keys, on the screen as it was before. `complete`: what was to be shown is on the
 * board; then that is left even where it ended before the first frame. */
void display_end(struct display *d, bool complete);

/* Instead of all that: write the table once, and nothing else. */
void display_print(struct display *d);

#endif
