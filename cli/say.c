/* say.c - one line on stderr for the person at the keyboard. */
#include "cli/say.h"

#include "cli/shown.h"

#include <stdarg.h>
#include <stdio.h>

enum { LINE_BYTES = 4 << 10 };

void say(const char *who, const char *fmt, ...)
{
    char text[LINE_BYTES], safe[LINE_BYTES];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    shown_text(safe, sizeof(safe), text);
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", who, safe);
}
