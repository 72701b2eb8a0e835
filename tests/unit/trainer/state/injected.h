/* injected.h - faults in the calls with which a checkpoint's thread writes: write, fsync, mkdir, mkdirat, renameat, unlinkat.
 *
 * The program's own functions stand in for the C library's. Calls of other threads go through unchanged. A write of a few bytes
 * is not counted.
 */
#ifndef TK_TESTS_UNIT_TRAINER_STATE_INJECTED_H
#define TK_TESTS_UNIT_TRAINER_STATE_INJECTED_H

#include <stdbool.h>
#include <stddef.h>

enum injected_what { INJECT_NOTHING, INJECT_DEATH, INJECT_ERROR };

/* Set before there are threads, and before ranks are forked: each process counts for itself. */
struct injected {
    enum injected_what what;
    int at;                   /* the call, from 0 */
    int error;                /* errno of INJECT_ERROR */
    bool *struck;             /* set when that call comes; memory that forked ranks share. NULL: not */
    void (*fsync)(int count); /* called before each fsync, from 0; NULL: not */
    void (*poll)(int count);  /* called before each question for stop signals, from 0; NULL: not */
    size_t refused;           /* an mmap of so many bytes, by any thread, finds no memory; 0: none */
};
extern struct injected injected;

/* Of this process so far. */
int injected_calls(void);
int injected_polls(void); /* of the stop signals: by each step of the training, and by evaluations */

#endif
