/* guards.h - decide whether a job gets a NetworkPolicy and a key, and create them. guards_create creates both
 * before an attempt's first pod, guards_create_policy the policy before TensorBoard. */
#ifndef TK_OPERATOR_PLAN_GUARDS_H
#define TK_OPERATOR_PLAN_GUARDS_H

#include "operator/plan/planner.h"

/* Label of pods that the job's NetworkPolicy selects, TensorBoard's too; its value is the job's name. */
#define LABEL_ISOLATED "batch.tensorstack.dev/isolated"

/* The one member of the key's Secret. */
#define GUARDS_KEY "key"

/* Name of the NetworkPolicy and of the Secret: <job>-<uid>. No other job has the same. */
char *guards_name(struct arena *a, const struct trainjob *job);

/* Whether the job's NetworkPolicy selects pods that are created now. False for open_network, for a job with
 * hostNetwork in any replicaSpec, and if the operator creates no policies. */
bool guards_isolate(const struct planner *p);

/* Whether pods that are created now get the job's key. True if launchers of several pods can meet (torchrun
 * enabled, c10d or static, no debug), and either a pod of the attempt has the key, or the attempt has no pod
 * and the operator creates keys. */
bool guards_key(const struct planner *p);

/* Add the NetworkPolicy to p->creates if guards_isolate, and the Secret if guards_key. Nothing if a slot of
 * the attempt has a pod. */
void guards_create(struct planner *p);

/* Add the NetworkPolicy to `list` if guards_isolate, unless p->creates already creates it. */
void guards_create_policy(struct planner *p, struct action_list *list);

#endif
