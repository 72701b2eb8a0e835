/* stopped_write.c - a library to preload into the trainer: its process stops (SIGSTOP) in its second write of a checkpoint, between
 * the creation of the temporary folder and its rename.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STOPPED_WRITE = 2 };

static atomic_int writes;

int renameat(int from, const char *old, int to, const char *new)
{
    if (strstr(old, "/.tmp-step-") && ++writes == STOPPED_WRITE)
        kill(getpid(), SIGSTOP);
    return (int)syscall(SYS_renameat2, from, old, to, new, 0u);
}
