/* text.h - cut text and repair its UTF-8. Pure. */
#ifndef TK_COMMON_TEXT_H
#define TK_COMMON_TEXT_H

#include "common/cleanup.h"
#include "common/err.h"
#include "common/sv.h"

/* The byte order mark of UTF-8. Editors of Windows begin texts with it; it is no part of them. */
#define TEXT_MARK "\xef\xbb\xbf"

/* The bytes of the mark that a text begins with, 0 or 3. -1, ERR_INVALID: it is UTF-16, which is not read. */
int text_mark(const void *bytes, size_t len, struct err *err) MUST_CHECK;

/* The last `max` bytes of s at most, never beginning inside a UTF-8 character. */
struct sv text_tail(const char *s, size_t max);

/* The length of the first `max` bytes of s at most, never ending inside a UTF-8 character. */
size_t text_head(const char *s, size_t max);

/* Where the longest end of s[0..len) begins whose bytes fit into `room` when each takes cost(byte), never inside a UTF-8
 * character. */
size_t text_end(const char *s, size_t len, size_t room, size_t (*cost)(char c));

/* `out`, of `size` bytes, has the beginning of a text of `full` bytes, as snprintf leaves and counts it. A text that did not fit
 * then ends between two words, with "…". */
void text_ellipsis(char *out, size_t size, size_t full);

/* The character at s[0..len), len > 0: its length in bytes; 0: it is no UTF-8. s may be shorter if it ends with a NUL. */
size_t text_character(const char *s, size_t len, uint32_t *ret);

/* Whether a terminal draws nothing for this character or, because of it, others in another order: soft hyphen, joiners, marks of
 * direction, separators of lines, tags. */
bool text_is_hidden(uint32_t c);

/* Replace bytes that are not valid UTF-8, such as those of a cut character, by '?'. The API server would
 * store another character in their place, and the stored text would never equal the one that was written. */
void text_mend(char *s);

/* The length of the escape sequence at p[0..len), which begins with ESC: of one that colours text, moves the cursor (CSI), sets
 * a title or a link (OSC). One that is cut reaches to the end. */
static inline size_t text_escape_length(const char *p, size_t len)
{
    const bool csi = len > 1 && p[1] == '[', osc = len > 1 && p[1] == ']';
    size_t n = 2;

    while (n < len && ((csi && (p[n] < 0x40 || p[n] > 0x7e)) || (osc && p[n] != '\a' && p[n] != '\x1b')))
        n++;
    n += csi || (osc && n < len && p[n] == '\a') ? 1 : osc ? 2 : 0;
    return n < len ? n : len;
}

/* Remove escape sequences from s, then text_mend. */
void text_plain(char *s);

/* Whether it is what gloo, NCCL or torch's TCPStore say when another rank is gone. */
bool text_tells_of_lost_peer(struct sv text);

/* Append to the text in `out`, which has room for `size` bytes with its NUL; what does not fit is cut. */
void text_add(char *out, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
