/* terminal.c - find out what stdout is. */
#include "cli/terminal.h"

#include "common/cleanup.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool locale_has_unicode(void)
{
    static const char *const NAMES[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        const char *value = getenv(NAMES[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return true;
}

struct terminal terminal_of(int fd)
{
    struct terminal t = {.columns = 80, .rows = 24};
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    const bool dumb = !term || !*term || strcmp(term, "dumb") == 0;
    struct winsize size;

    t.is_terminal = isatty(fd) && !dumb;
    t.unicode = locale_has_unicode();
    t.colours = t.is_terminal && (!no || !*no);
    if (isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
        t.columns = size.ws_col;
        t.rows = size.ws_row;
    }
    return t;
}
