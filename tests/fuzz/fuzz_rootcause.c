/* fuzz_rootcause.c - for any text, the cause that is found has an exit code that a process can have, and its line is one line. */
#include "fuzz.h"

#include "operator/plan/rootcause.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rootcause cause = {.rank = -2};
    cleanup_arena struct arena a = {0};
    char *text = malloc(size + 1);

    MUST(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    if (rootcause_parse(text, &cause)) {
        MUST(cause.exit_code >= 1 && cause.exit_code <= 255 && cause.rank >= -1);
        MUST(cause.signal >= 0 && cause.signal <= 64);
        MUST(!cause.signal || cause.exit_code == 128 + cause.signal);
    } else
        MUST(cause.rank == -2);
    const char *log = rootcause_log(text, (int32_t)size % 3 - 1, &a);
    MUST(strlen(log) <= size + 1);
    const char *line = rootcause_line(text, size % 2 ? log : "", &a);
    MUST(strlen(line) <= 256);
    for (const char *c = line; *c; c++)
        MUST((unsigned char)*c >= 0x20 && *c != 0x7f);
    MUST(strlen(rootcause_text(text, &a)) <= size);
    const char *brief = rootcause_brief(text, &a);
    MUST(strlen(brief) <= (size > 256 ? size : 256));
    MUST(strlen(rootcause_excerpt(text, &a)) <= size + 1 + strlen(brief));
    free(text);
    return 0;
}
