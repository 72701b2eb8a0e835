/* thread.h - a thread that no signal is delivered to: signals are the business of the thread that was there first.
 *
 * Errors: pthread_create's own code; 0 when it runs. The caller's mask is as before either way.
 */
#ifndef TK_COMMON_THREAD_H
#define TK_COMMON_THREAD_H

#include "common/cleanup.h"

#include <pthread.h>

int thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg) MUST_CHECK;

#endif
