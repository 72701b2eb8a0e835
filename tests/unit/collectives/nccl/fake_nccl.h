/* fake_nccl.h - the controls of the fake NCCL: faults, and the calls that it got.
 *
 * The environment variable FAKE_NCCL names one fault, read when a communicator is made: KIND:RANK:N, N being a call's
 * number from 0 (a buffer's first run counts):
 *   stall       the rank's call N is queued and never begins
 *   hang        the same, and ncclCommAbort does not return either
 *   remote, system, usage  from call N on that rank's asynchronous error
 *   slow        every call is taken only after N looks
 *   no-id, no-init, late-init  making the id fails; meeting is refused; meeting takes for ever
 *   no-window   windows cannot be had; bad-window: one is refused
 *   no-finalize finalizing takes for ever
 */
#ifndef TK_TESTS_UNIT_COLLECTIVES_NCCL_FAKE_NCCL_H
#define TK_TESTS_UNIT_COLLECTIVES_NCCL_FAKE_NCCL_H

struct fake_nccl_counts {
    int windows, registered, allocated; /* now */
    int aborted, finalized, destroyed;  /* so far */
    int windows_made, registered_made;
};

/* Found by dlsym as "fake_nccl_counts". */
const struct fake_nccl_counts *fake_nccl_counts(void);

#endif
