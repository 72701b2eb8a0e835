/* suspect.h - choose, among this node's ranks, the one that most likely blocks a round that hangs. Pure. agent_hang.c
 * calls it; the leader compares the suspects of all nodes (rendezvous/quorum.c).
 *
 * The rank with the strongest evidence (enum meeting_strength) is the suspect. From the strongest: a rank that is
 * stopped; one in uninterruptible sleep; one that has not begun the collective call that others are in. After these:
 *   - where collective calls are known (this project's trainer): a rank in no call, while another rank of the node is
 *     in one or as the node's only rank;
 *   - where none is known, or all ranks of the node are between two calls: a Python rank whose stack is not in a call
 *     that waits for others.
 * Of equals, the suspect has begun fewer calls, or stands at a code line where fewer ranks stand, or sleeps.
 * If no rank differs from the others, the strength is STRENGTH_UNKNOWN, and `text` reports that a connection may be lost
 * (all wait) or that the rank cannot be determined.
 *
 * Errors: none. Texts come from the ranks; those here are printable ASCII and bounded.
 */
#ifndef TK_LAUNCHER_SUSPECT_H
#define TK_LAUNCHER_SUSPECT_H

#include "host/rank_state.h"
#include "launcher/stack.h"
#include "rendezvous/meeting.h"

#include <stdbool.h>
#include <stdint.h>

enum { SUSPECT_WCHAN_BYTES = 40, SUSPECT_LINE_BYTES = 120, SUSPECT_BYTES = 400 };

/* A rank, when its round hangs. */
struct suspect_rank {
    int rank, pid;
    bool ended;                      /* it has exited with status 0 */
    char state;                      /* from /proc/PID/stat; 0: not known */
    char wchan[SUSPECT_WCHAN_BYTES]; /* the kernel function in which it sleeps; "": not known */
    int cpu_percent;                 /* of one CPU, all threads, over HANG_LOOK_MS; -1: not known */
    struct rank_slot slot;           /* its slot; all 0: it has written nothing */
    struct stack stack;
    char last_line[SUSPECT_LINE_BYTES]; /* of its output; "": none */
};

struct suspect {
    int index; /* index into r, not the rank number; with STRENGTH_UNKNOWN it names a rank only as an example */
    enum meeting_strength strength;
    int64_t place, number; /* as in struct meeting_cause */
    char text[SUSPECT_BYTES];
};

/* Choose among n > 0 ranks. `reached`, `call`: the last collective call that any rank of the run has begun;
 * 0: not known. */
struct suspect suspect_find(const struct suspect_rank *r, int n, uint64_t reached, uint32_t call);

/* Describe the evidence about a rank in one line: "rank 1 (pid 77): T, do_signal_stop; CPU 0%; training, in
 * all_reduce 12; last line: ...". */
void suspect_describe(const struct suspect_rank *r, char out[static SUSPECT_BYTES]);

#endif
