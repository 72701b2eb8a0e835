/* run.h - start the real torchrun with shell workers and see what became of it. */
#ifndef TK_TESTS_LAUNCHER_RUN_H
#define TK_TESTS_LAUNCHER_RUN_H

#include "common/buf.h"
#include "test.h"

#include <stdbool.h>
#include <sys/types.h>

/* One run in a fresh folder, which is its working directory and goes with run_release. */
struct run {
    char dir[64];
    pid_t pid;
    int status; /* as waitpid gives it */
    struct buf out, err;
};

/* The full path of torchrun; the test program gets it as argv[1]. */
extern char *run_torchrun;

/* A signal that the launcher is started to ignore; 0: none of SIGHUP, SIGINT and SIGQUIT, however the test was started. */
extern int run_ignored;

/* Start it; `script` is what each rank runs (sh -c), NULL: args hold the program. Ends with NULL. */
void run_start(struct run *r, const char *const *args, const char *script);

/* The same with `out` and `err` as its stdout and stderr; -1: a file, which run_wait reads. */
void run_start_on(struct run *r, const char *const *args, const char *script, int out, int err);

/* Wait and read what it printed. Returns the exit code, or -signal. */
int run_wait(struct run *r);

/* Both, and run_release when `keep` is NULL. */
int run_once(const char *const *args, const char *script, struct run *keep);

/* All three: it ends with `code`, and its stderr holds `err`; NULL: anything. */
void run_expect(const char *const *args, const char *script, int code, const char *err);

/* `text`, which it printed, holds `want`; has_said: while it runs, whether its stderr does so far. */
void run_says(const struct buf *text, const char *want);
bool run_has_said(const struct run *r, const char *want);

/* Its failure block blames that rank, which ended with `code` (-n: by signal n; 0: however), and has `text` behind the root cause's
 * heading. */
void run_blames(const struct run *r, int rank, int code, const char *text);

/* Read the one file that the pattern names in the folder; expect_file: it holds `want` and nothing else. */
void run_read(const struct run *r, const char *pattern, struct buf *out);
void run_expect_file(const struct run *r, const char *pattern, const char *want);

void run_release(struct run *r);

/* Wait (by polling, within a generous bound) until `name` exists in the folder; false when it never does,
 * or torchrun has ended without. */
bool run_wait_file(const struct run *r, const char *name);

/* Whether torchrun has not ended yet. */
bool run_runs(const struct run *r);

bool run_has_file(const struct run *r, const char *name);

/* Wait until it has threads: it has blocked its signals and begun to meet others. */
void run_wait_threads(const struct run *r);

/* Make or remove a file that the ranks look for. */
void run_touch(const struct run *r, const char *name);
void run_remove(const struct run *r, const char *name);

/* A number that a rank wrote to a file. */
int run_read_number(const struct run *r, const char *name);

/* Wait until process `pid` is gone or a zombie nobody waits for; false when it stays. */
bool run_gone(pid_t pid);

/* For a script: end with 7 unless MASTER_PORT is kept for whoever listens at it with SO_REUSEADDR. */
#define RUN_PORT_IS_HELD                                                                                     \
    "python3 -c 'import os, socket\n"                                                                        \
    "at = (\"\", int(os.environ[\"MASTER_PORT\"]))\n"                                                        \
    "try:\n"                                                                                                 \
    "    socket.socket().bind(at)\n"                                                                         \
    "    raise SystemExit(7)\n"                                                                              \
    "except OSError:\n"                                                                                      \
    "    socket.create_server(at)' || exit 7; "

/* What main returns, for a program whose argv[1] is torchrun. torch: the tests need a Python with torch, $TK_TEST_PYTHON or else
 * python3, and are skipped without. */
int run_main(int argc, char **argv, const struct CMUnitTest *tests, size_t n);
int run_torch_main(int argc, char **argv, const struct CMUnitTest *tests, size_t n);

#define RUN_ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif
