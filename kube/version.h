/* version.h - compare two resourceVersions of one resource. Pure.
 *
 * They are revisions of etcd, and their numeric order is the order of the writes: guaranteed since Kubernetes
 * 1.35, true before. A version that is not a number cannot be compared.
 */
#ifndef TK_KUBE_VERSION_H
#define TK_KUBE_VERSION_H

#include <stdbool.h>

/* Whether `version` is newer than `than`. False also when either is not a number from 0 to INT64_MAX. */
bool version_is_newer(const char *version, const char *than);

/* Whether it is this one or newer. */
bool version_is_reached(const char *version, const char *wanted);

#endif
