/* process_state.h - what a process does, from /proc/PID/stat, for a test that waits until it is stopped, sleeps or loops. */
#ifndef TK_TESTS_UNIT_PROCESS_STATE_H
#define TK_TESTS_UNIT_PROCESS_STATE_H

#include "common/cleanup.h"

#include <stdio.h>
#include <string.h>
#include <sys/types.h>

/* 'R', 'S', 'T', ...; 0: there is no such process. ticks: not NULL: the CPU time that it has used. */
static inline char process_state(pid_t pid, long *ticks)
{
    char path[64], text[512] = "", state = 0;
    long user = 0, system = 0;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    cleanup_fclose FILE *f = fopen(path, "re");
    const char *at = f && fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;
    if (!at ||
        sscanf(at, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &state, &user, &system) != 3)
        return 0;
    if (ticks)
        *ticks = user + system;
    return state;
}

#endif
