/* kubectl.h - become kubectl for what it does better: shells in containers, forwarded ports. For the verbs.
 *
 * Errors:    ERR_FATAL: kubectl does not start.
 */
#ifndef TK_CLI_KUBECTL_H
#define TK_CLI_KUBECTL_H

#include "cli/session.h"

/* Replace this process by kubectl with these words (NULL ends them) behind its own --kubeconfig, --context and --namespace, as
 * they are here. Returns only on failure: -1. */
int kubectl_become(const struct session *s, const struct args *a, const char *const *words, struct err *err);

#endif
