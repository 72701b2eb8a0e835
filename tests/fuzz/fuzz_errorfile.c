/* fuzz_errorfile.c - what a failed rank left in its error file: the message that goes to the console and to other nodes
 * is bounded, and moves no cursor. */
#include "fuzz_file.h"

#include "launcher/machine.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { LONGEST = 4000 };
    cleanup_arena struct arena a = {0};
    cleanup_fuzz_file struct fuzz_file f = fuzz_file_make(data, size);

    const char *message = machine_error_message(f.path, &a);
    if (!message)
        return 0;
    MUST(strlen(message) <= LONGEST && strlen(message) <= size);
    for (const char *p = message; *p; p++)
        MUST(*p == '\n' || ((unsigned char)*p >= ' ' && *p != 0x7f));
    return 0;
}
