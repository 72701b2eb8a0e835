/* say.h - one line on stderr for the person at the keyboard. For main and the verbs. */
#ifndef TK_CLI_SAY_H
#define TK_CLI_SAY_H

/* Print "WHO: TEXT". `who` is ours or the user's own; the text becomes one line, whatever others' text is in it: made safe for a
 * terminal (shown.h) and cut at 4 KiB. What stdout holds is written before. */
void say(const char *who, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
