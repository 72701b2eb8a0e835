/* fuzz_errorfile.c - what a failed rank left in its error file: the texts that go to the console and to other nodes are
 * bounded, and move no cursor. */
#include "fuzz_file.h"

#include "launcher/error_file.h"

#include <string.h>

static void check(const char *text, size_t longest, size_t size)
{
    MUST(strlen(text) <= longest && strlen(text) <= size);
    for (const char *p = text; *p; p++) {
        MUST(*p == '\n' || ((unsigned char)*p >= ' ' && *p != 0x7f));
        MUST((unsigned char)p[0] != 0xc2 || (unsigned char)p[1] >= 0xa0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_arena struct arena a = {0};
    cleanup_fuzz_file struct fuzz_file f = fuzz_file_make(data, size);

    const struct error_file got = error_file_read(f.path, &a);
    if (got.message)
        check(got.message, ERROR_FILE_MESSAGE_BYTES, size);
    if (got.traceback)
        check(got.traceback, ERROR_FILE_TRACEBACK_BYTES, size);
    MUST(got.wall_ms >= 0);
    return 0;
}
