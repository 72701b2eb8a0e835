/* guards.h - the NetworkPolicy and the key of a job: whether it has them, and their creation before an attempt's first pod, or TensorBoard. */
#ifndef TK_OPERATOR_PLAN_GUARDS_H
#define TK_OPERATOR_PLAN_GUARDS_H

#include "operator/plan/planner.h"

/* Label of pods that the job's NetworkPolicy selects, TensorBoard's too; its value is the job's name. */
#define LABEL_ISOLATED "batch.tensorstack.dev/isolated"

/* The one member of the key's Secret. */
#define GUARDS_KEY "key"

/* <job>-<uid>, of both: no other job's object ever has it. */
char *guards_name(struct arena *a, const struct trainjob *job);

/* Whether pods that are made now are selected by the job's NetworkPolicy. */
bool guards_isolate(const struct planner *p);

/* Whether pods that are made now get the job's key: as those of their attempt that are there. */
bool guards_key(const struct planner *p);

/* Add what the attempt needs, unless one of its places has a pod. */
void guards_create(struct planner *p);

/* Add the NetworkPolicy, if pods are selected by it and the creates of pods have none before them. */
void guards_create_policy(struct planner *p, struct action_list *list);

#endif
