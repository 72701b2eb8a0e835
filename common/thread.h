/* thread.h - start a thread with all signals blocked, so that they are delivered to the main thread.
 *
 * Errors:    returns pthread_create's error code; 0 on success. The caller's signal mask is unchanged.
 */
#ifndef TK_COMMON_THREAD_H
#define TK_COMMON_THREAD_H

#include "common/cleanup.h"

#include <pthread.h>

int thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg) MUST_CHECK;

#endif
