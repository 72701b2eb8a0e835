/* userinfo.h - decode one `user` and one `cluster` of a kubeconfig into the configuration. Used by
 * kubeconfig.c only.
 *
 * Errors:    ERR_INVALID, ERR_NOT_FOUND (a file that is named): both name the field. *c may be partly filled
 *            then.
 */
#ifndef TK_KUBE_AUTH_USERINFO_H
#define TK_KUBE_AUTH_USERINFO_H

#include "common/json.h"
#include "kube/auth/config.h"

/* `dir`: the folder of relative paths, without a trailing '/'. */
int userinfo_read(const struct json_at *user, const char *dir, struct kube_config *c,
                  struct err *err) MUST_CHECK;
int clusterinfo_read(const struct json_at *cluster, const char *dir, struct kube_config *c,
                     struct err *err) MUST_CHECK;

#endif
