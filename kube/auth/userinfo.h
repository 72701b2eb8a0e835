/* userinfo.h - one `user` and one `cluster` of a kubeconfig, into the configuration. Used by kubeconfig.c only.
 *
 * Errors: ERR_INVALID, ERR_NOT_FOUND (a file that is named): they name the field. *c may be half filled then.
 */
#ifndef TK_KUBE_AUTH_USERINFO_H
#define TK_KUBE_AUTH_USERINFO_H

#include "common/json.h"
#include "kube/auth/config.h"

/* `dir`: where relative paths begin, without a '/' at its end. */
int userinfo_read(const struct json_at *user, const char *dir, struct kube_config *c,
                  struct err *err) MUST_CHECK;
int clusterinfo_read(const struct json_at *cluster, const char *dir, struct kube_config *c,
                     struct err *err) MUST_CHECK;

#endif
