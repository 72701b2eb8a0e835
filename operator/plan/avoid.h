/* avoid.h - nodes that break a job: decide which ones its next pods avoid, and for how long. Pure.
 *
 * A node is *accused* by a failure of a pod on it of which the node may be the cause (exitcode_accuses_node) and
 * which pods of other nodes do not share. The second accusation makes the job's new pods avoid the node for an
 * hour, unless another node was accused too: then the program is the likelier cause. The status lists the avoided
 * nodes; an annotation of a pod shows that it avoids some, whatever happened to the status since.
 *
 * Order:     these functions change only the status, like restart.h.
 */
#ifndef TK_OPERATOR_PLAN_AVOID_H
#define TK_OPERATOR_PLAN_AVOID_H

#include "operator/plan/judge.h"

enum { AVOID_MS = 3600 * 1000 };

/* Drop what is over, or all with runPolicy.avoidNodes: false. */
void avoid_begin(struct planner *p);

/* The judged failure is the last one of the status, and the job continues: avoid the node if it is accused often
 * enough. */
void avoid_consider(struct planner *p, const struct judgement *j);

/* Whether the pod waits for a node and avoids some. */
bool avoid_holds(const struct slot *s);

/* If pods wait too long for a node because they avoid some: avoid none, and replace these pods (of an attempt
 * that never ran: all its pods). Nothing is counted. Call it when the attempt was judged. */
void avoid_give_up(struct planner *p);

/* Make the pod avoid the nodes of the status. */
void avoid_apply(const struct planner *p, cJSON *pod);

/* Whether the failure accuses the node of this name. */
bool avoid_is_evidence(const struct failure *f, const char *node);

#endif
