/* session.h - the connection of one kubectl-ptj process to the API server, through kubectl (proxy.h). main.c opens it for each
 * verb that is not offline; the verb sends its requests over it.
 *
 * Ownership: session_close frees all. The caller owns the objects that session_call and session_job return.
 * Errors:    those of kube/apistatus.h and kube/transport.h, for users: one for a missing permission names it, an
 *            unreachable server has kubectl's message.
 */
#ifndef TK_CLI_SESSION_H
#define TK_CLI_SESSION_H

#include "cli/args.h"
#include "cli/proxy.h"
#include "kube/auth/config.h"
#include "kube/http.h"
#include "kube/loop.h"
#include "kube/request.h"

#include <cjson/cJSON.h>

extern const struct kube_resource SESSION_JOBS; /* pytorchtrainingjobs */

struct session {
    struct kubectl_proxy proxy;
    struct kube_loop_fd words; /* kubectl's stderr */
    struct kube_config config;
    struct kube_loop *loop;
    struct http *http;
    struct kube_transport api; /* without limits of time until the first answer, if stdin is a terminal */
    const char *ns;            /* --namespace, else the context's */
    bool stopped; /* code that stops the loop during a call sets this; calls fail until it is false again */
    struct buf options; /* the given options of the connection, for a command to paste: kubectl_options */
};

int session_open(struct session *s, const struct args *a, struct err *err) MUST_CHECK;
void session_close(struct session *s);

/* Whether kubectl may ask for a password now: stdin is a terminal, and nothing has answered yet. No time limit runs meanwhile. */
bool session_may_ask(const struct http *http);

/* Send one request and run the loop until its answer. ERR_FATAL: other code stopped the loop before. *ret is the object; free it
 * with cJSON_Delete. With ret NULL, an object that is too large to be read back is no error. */
int session_call(struct session *s, const struct kube_request *r, cJSON **ret, struct err *err) MUST_CHECK;

/* Set the error of a call that was stopped. Always -1. */
int session_stopped(struct err *err);

/* Run the loop until *done. -1: the loop failed, or other code stopped it. */
int session_wait(struct session *s, const bool *done, struct err *err) MUST_CHECK;

/* End the process by the signal, as in a program that does not catch it, so that a loop in a shell ends, too. */
void session_die_of(int signal);

/* GET the job of this name in the session's namespace. */
int session_job(struct session *s, const char *name, cJSON **ret, struct err *err) MUST_CHECK;

/* JSON merge patch of the job, then print "NAME WHAT" on stdout. */
int session_patch_job(struct session *s, const char *name, const char *patch, const char *what,
                      struct err *err) MUST_CHECK;

/* End the session and become kubectl with these words, in its namespace: kubectl.h. */
int session_become(struct session *s, const struct args *a, const char *const *words, struct err *err);

/* Rewrite the error of request `r` for users: see Errors. Kind and code stay. Always -1. */
int session_explain(const struct session *s, const struct kube_request *r, struct err *err);

#define cleanup_session __attribute__((cleanup(session_close)))

#endif
