/* budget.h - the PodDisruptionBudget of which `kubectl ptj why` warns. Pure. */
#ifndef TK_CLI_WHY_BUDGET_H
#define TK_CLI_WHY_BUDGET_H

#include "cli/why/finding.h"

/* The name of one that lets no node with a pod of the job be drained, since it finds no pod that it should count. NULL: there is none. */
const char *budget_of_none(const struct why_facts *f);

#endif
