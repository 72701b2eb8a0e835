/* crew.h - several launchers on one machine that meet at a port of 127.0.0.1. */
#ifndef TK_TESTS_LAUNCHER_CREW_H
#define TK_TESTS_LAUNCHER_CREW_H

#include "run.h"

enum { CREW_MAX = 8, CREW_AUTO = -1, CREW_ALL = -2 };

struct crew {
    int n, port;
    const char *at; /* the leader's address; 127.0.0.1 by default */
    int host;       /* hosts the leader; CREW_AUTO: whoever gets the port; CREW_ALL: each has is_host=true */
    const char *conf; /* more of --rdzv-conf, or NULL */
    bool is_static;
    struct run runs[CREW_MAX];
    bool started[CREW_MAX];
    char shared[32];
};

void crew_open(struct crew *c, int n);

/* Start node i; its ranks have NODE=i in their environment, and SHARED, a folder of all of them. `args` and `script` as run_start. */
void crew_start(struct crew *c, int i, const char *const *args, const char *script);
void crew_start_all(struct crew *c, const char *const *args, const char *script);

/* As run_wait. */
int crew_wait(struct crew *c, int i);

/* The same, and it is `code`; of node i, or of each that was started. */
void crew_expect_node(struct crew *c, int i, int code);
void crew_expect(struct crew *c, int code);

/* All have been waited for. */
void crew_release(struct crew *c);

/* Both. */
void crew_end(struct crew *c, int code);

/* In the folder of each: make the file, or wait for it. */
void crew_touch(const struct crew *c, const char *name);
void crew_wait_file(const struct crew *c, const char *name);

#endif
