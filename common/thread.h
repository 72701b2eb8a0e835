/* thread.h - start a thread with all signals blocked, SIGSEGV and its like too: those sent to the process are delivered to a
 * thread that does not block them. The caller joins or detaches it.
 *
 * Errors:    returns pthread_create's error code; 0 on success. The caller's signal mask is unchanged.
 */
#ifndef TK_COMMON_THREAD_H
#define TK_COMMON_THREAD_H

#include "common/cleanup.h"

#include <pthread.h>

int thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg) MUST_CHECK;

#endif
