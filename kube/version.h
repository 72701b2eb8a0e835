/* version.h - whether a resourceVersion is newer than another one of the same resource. Pure.
 *
 * They are revisions of etcd, and as numbers in the order of the writes: promised since Kubernetes 1.35, true
 * before. Of what is no number nobody can say which is newer.
 */
#ifndef TK_KUBE_VERSION_H
#define TK_KUBE_VERSION_H

#include <stdbool.h>

/* False also when either is no number from 0 to INT64_MAX. */
bool version_is_newer(const char *version, const char *than);

#endif
