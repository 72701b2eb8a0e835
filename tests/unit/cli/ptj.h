/* ptj.h - kubectl-ptj as a process against a fake API server, for tests of verbs.
 *
 * Ownership: ptj_end stops the server and removes the folder; result texts are freed by ptj_forget.
 */
#ifndef TK_TESTS_CLI_PTJ_H
#define TK_TESTS_CLI_PTJ_H

#include "tests/fakes/apiserver.h"

#include <sys/types.h>

struct ptj {
    const char *program;
    struct fake_apiserver *server;
    char dir
        [64]; /* with the server's socket "api", and a "kubectl" whose proxy leads there; its namespace is "team" */
    const char *kubectl; /* NULL: that one */
};

struct ptj_result {
    int status; /* exit status; 128 + n: it was ended by signal n */
    char *out, *err;
};

/* Of a struct fake_fault_plan: what the API server answers where a permission is missing. */
#define PTJ_FORBIDDEN                                                                                        \
    .fault = FAKE_STATUS, .status = 403,                                                                     \
    .message = "pods is forbidden: User \"me\" cannot get resource \"pods\" in API group \"\""

#define PTJ_JOBS "/apis/batch.tensorstack.dev/v1beta1/namespaces/team/pytorchtrainingjobs"

void ptj_begin(struct ptj *p, const char *program);
void ptj_end(struct ptj *p);

/* Write the stand-in for kubectl again: its proxy runs these words of sh when it serves; NULL: none. It writes a line with its pid and its words to
 * the file "started"; whatever names "none" fails; other words than proxy and config view are printed. */
void ptj_kubectl(const struct ptj *p, const char *serve);

/* Put a program that sh runs: `text` begins with #!. */
void ptj_script(const char *at, const char *text);

/* The program that is tested: main sets it. Set-up and tear-down of a case, whose state is a struct ptj of it. */
extern const char *ptj_program;
int ptj_setup(void **state);
int ptj_teardown(void **state);

/* The words of a command line, for the functions below. */
#define RUN(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Put a job named NAME whose spec and status are these (JSON). */
void ptj_put_job(struct ptj *p, const char *name, const char *spec, const char *status);

/* Put pod j-node-INDEX of the job "j", which is there; its spec and status are these (JSON). */
#define PTJ_PODS "/api/v1/namespaces/team/pods"
void ptj_put_pod(struct ptj *p, int index, int attempt, const char *spec, const char *status);

/* In a child that becomes the program: which kubectl it runs, and that folders are made in p->dir. */
void ptj_environment(const struct ptj *p);

/* All that a file in p->dir has; "": it is not there. Valid until the next call. */
const char *ptj_text(const struct ptj *p, const char *file);

/* Wait until a file in p->dir has this text: "out" and "err" have the program's output. */
void ptj_await(const struct ptj *p, const char *file, const char *text);

/* How many folders of sockets there are; only the user may enter them. */
size_t ptj_folders(const struct ptj *p);

/* Begin it with these arguments (NULL ends them), and wait for its end. */
pid_t ptj_start(struct ptj *p, const char *const *args);
struct ptj_result ptj_wait(struct ptj *p, pid_t pid);
struct ptj_result ptj_run(struct ptj *p, const char *const *args);
void ptj_forget(struct ptj_result *r);

/* Run it, and expect this exit status and these parts of its output (NULL: nothing at all). */
void ptj_expect(struct ptj *p, const char *const *args, int status, const char *out, const char *err);

#endif
