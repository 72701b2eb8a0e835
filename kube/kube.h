/* kube.h - everything a controller needs, for programs that link the installed library (README.md, "Installed").
 *
 * Stable from 1.0 on: what this header declares under the prefix kube_, KUBE_ or cleanup_kube_. Structs may get new members at
 * their end, so initialise them by name. Everything else in the installed headers may change in any version; the functions of
 * common/ are not part of the library's symbols.
 */
#ifndef TK_KUBE_KUBE_H
#define TK_KUBE_KUBE_H

#include "kube/auth/config.h"
#include "kube/manager.h"
#include "kube/object.h"
#include "kube/reconciler.h"
#include "kube/recorder.h"

#define KUBE_VERSION "0.2.0"
#define KUBE_VERSION_NUMBER 0x000200 /* 0xMMmmpp: major, minor, patch */

#endif
