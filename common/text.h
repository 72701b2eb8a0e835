/* text.h - cut text and repair its UTF-8. Pure. */
#ifndef TK_COMMON_TEXT_H
#define TK_COMMON_TEXT_H

#include "common/cleanup.h"
#include "common/err.h"
#include "common/sv.h"

#include <string.h>

/* The byte order mark of UTF-8, with which Windows editors begin texts. Skip it. */
#define TEXT_MARK "\xef\xbb\xbf"

/* The length of the mark at the begin of a text, 0 or 3. -1, ERR_INVALID: the text is UTF-16. */
int text_mark(const void *bytes, size_t len, struct err *err) MUST_CHECK;

/* The last `max` bytes of s at most, never beginning inside a UTF-8 character. */
struct sv text_tail(const char *s, size_t max);

/* The length of the first `max` bytes of s at most, never ending inside a UTF-8 character. */
size_t text_head(const char *s, size_t max);

/* The offset of the longest tail of s[0..len) that fits into `room` when each byte costs cost(byte), never
 * inside a UTF-8 character. */
size_t text_end(const char *s, size_t len, size_t room, size_t (*cost)(char c));

/* After snprintf into `out` of `size` bytes returned `full`: if the text did not fit, cut it between two
 * words and end it with "…". */
void text_ellipsis(char *out, size_t size, size_t full);

/* The length in bytes of the character at s[0..len), len > 0; *ret is its code point. 0: not UTF-8. s may be
 * shorter if it ends with a NUL. */
size_t text_character(const char *s, size_t len, uint32_t *ret);

/* Whether all of it is UTF-8. */
bool text_is_utf8(struct sv text);

/* Whether a terminal draws nothing for this character, or draws others in another order because of it: soft
 * hyphen, joiners, direction marks, line separators, tags. */
bool text_is_hidden(uint32_t c);

/* Replace bytes that are not valid UTF-8, such as those of a cut character, by '?'. The API server would
 * replace them by another character, and the stored text would never equal the text that was sent. */
void text_repair(char *s);

/* The length of the escape sequence at p[0..len), which begins with ESC: one that colours text or moves the
 * cursor (CSI), or sets a title or a link (OSC and other strings, to BEL or ESC \). An incomplete sequence
 * extends to the end of its line: what follows in a log is another message. */
static inline size_t text_escape_length(const char *p, size_t len)
{
    const bool csi = len > 1 && p[1] == '[', string = len > 1 && memchr("]PX^_", p[1], 5);
    size_t n = len > 1 && p[1] == '\n' ? 1 : 2;

    while (n < len && p[n] != '\n' &&
           ((csi && (p[n] < 0x40 || p[n] > 0x7e)) || (string && p[n] != '\a' && p[n] != '\x1b')))
        n++;
    if (n < len && p[n] != '\n' && (csi || string))
        n += p[n] == '\x1b' ? 2 : 1;
    return n < len ? n : len;
}

/* Remove escape sequences from s, then text_repair. */
void text_plain(char *s);

/* Whether it is a message of gloo, NCCL or torch's TCPStore about a lost rank. */
bool text_is_lost_peer(struct sv text);

/* Append to the text in `out` of `size` bytes, NUL included. Text that does not fit is cut. */
void text_add(char *out, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
