/* pages.h - what `kubectl ptj watch` shows of the selected job besides the table: `why`, and the logs.
 *
 * Both wait for the API server in the event loop. So a key only stops the loop, and pages_open is called outside of it.
 * Ownership: borrows session and display; pages_release frees what `why` read.
 */
#ifndef TK_CLI_WATCH_PAGES_H
#define TK_CLI_WATCH_PAGES_H

#include "cli/watch/display.h"
#include "cli/why/collect.h"
#include "cli/why/screen.h"

struct pages {
    struct session *session;
    struct display *display;
    const bool *over; /* the program ends */
    bool open;        /* a page is shown, not the table */
    enum key key;     /* what pages_open is to do; KEY_OTHER: nothing */

    /* Internal. */
    char ns[sizeof(((struct board_job *)0)->ns)], name[sizeof(((struct board_job *)0)->name)];
    char hint[DISPLAY_NOTE_BYTES];
    struct collected found;
    bool read;       /* `found` is complete */
    struct buf text; /* that of `found`, for a screen of this size */
    struct screen_size size;
    bool logs_ended; /* any key goes back */
    struct err err;  /* why it could not be read */
};

/* A key was pressed. False: it is not for a page. */
bool pages_key(struct pages *p, enum key key);

/* Do what p->key says: open a page, or go back to the table. */
void pages_open(struct pages *p);
void pages_release(struct pages *p);

#endif
