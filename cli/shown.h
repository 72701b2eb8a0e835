/* shown.h - make text that others wrote (logs, messages, names in objects) safe to print on a terminal. Pure.
 *
 * Errors:    a text that is longer than the buffer's limit makes it `full` (buf.h).
 */
#ifndef TK_CLI_SHOWN_H
#define TK_CLI_SHOWN_H

#include "common/arena.h"
#include "common/buf.h"
#include "common/sv.h"

/* Append one line of text. Terminal escape sequences (ESC with all that belongs to it) are left out; of what follows a carriage
 * return within the line, as progress bars write it, the last part counts; tabs become a space; other control characters,
 * C1 ones too, hidden characters (text_is_hidden), and bytes that are not UTF-8 become '?'. */
void shown_line(struct buf *out, struct sv text);

/* Text of any number of lines as one, with a space between them, cut to `size` bytes with its NUL. */
void shown_text(char *to, size_t size, const char *text);

/* A name for a message: bytes of it that a terminal would obey, hide or not know are \xNN. In the arena. */
const char *shown_name(struct arena *a, const char *name);

/* Append a word of a command line, in quotes where a shell would read it otherwise. */
void shown_word(struct buf *out, const char *word);

/* How many columns a text that shown_line made takes: one per character, none for combining marks, two for East Asian wide
 * characters and emoji. */
size_t shown_columns(struct sv text);

/* The length in bytes of the beginning of such a text that fits into `columns`. */
size_t shown_fit(struct sv text, size_t columns);

#endif
