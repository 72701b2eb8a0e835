/* crew.c - see crew.h. */
#include "crew.h"
#include "../ports.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS_MAX = 16 };

void crew_open(struct crew *c, int n)
{
    *c = (struct crew){.n = n, .at = "127.0.0.1", .port = ports_take(), .shared = "/tmp/test-crew-XXXXXX"};
    assert_non_null(mkdtemp(c->shared));
    setenv("SHARED", c->shared, 1);
}

void crew_start(struct crew *c, int i, const char *const *args, const char *script)
{
    char endpoint[64], conf[160], master[48], node[12];
    const char *words[WORDS_MAX] = {endpoint, c->is_static ? "--rdzv-backend=static" : "--rdzv-backend=c10d"};
    int n = 2;

    snprintf(endpoint, sizeof(endpoint), "--rdzv-endpoint=%s:%d", c->at, c->port);
    snprintf(conf, sizeof(conf), "--rdzv-conf=use_libuv=1%s%s%s",
             c->host == CREW_AUTO                  ? ""
             : c->host == i || c->host == CREW_ALL ? ",is_host=true"
                                                   : ",is_host=false",
             c->conf ? "," : "", c->conf ? c->conf : "");
    words[n++] = conf;
    snprintf(master, sizeof(master), "--master-port=%d", c->port + 1);
    if (c->is_static)
        words[n++] = master;
    for (; *args; args++) {
        assert_true(n < WORDS_MAX - 1);
        words[n++] = *args;
    }
    snprintf(node, sizeof(node), "%d", i);
    setenv("NODE", node, 1);
    run_start(&c->runs[i], words, script);
    c->started[i] = true;
}

void crew_start_all(struct crew *c, const char *const *args, const char *script)
{
    for (int i = 0; i < c->n; i++)
        crew_start(c, i, args, script);
}

int crew_wait(struct crew *c, int i)
{
    return run_wait(&c->runs[i]);
}

/* Scripts make files there, and no folders. */
static void remove_shared(const char *path)
{
    DIR *dir = opendir(path);

    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        if (e->d_name[0] != '.')
            assert_int_equal(unlinkat(dirfd(dir), e->d_name, 0), 0);
    closedir(dir);
    assert_int_equal(rmdir(path), 0);
}

void crew_release(struct crew *c)
{
    for (int i = 0; i < c->n; i++)
        if (c->started[i])
            run_release(&c->runs[i]);
    remove_shared(c->shared);
}

void crew_expect_node(struct crew *c, int i, int code)
{
    const int got = run_wait(&c->runs[i]);

    if (got != code)
        fail_msg("node %d ended with %d, expected %d: %s", i, got, code, buf_str(&c->runs[i].err));
}

void crew_expect(struct crew *c, int code)
{
    for (int i = 0; i < c->n; i++)
        if (c->started[i])
            crew_expect_node(c, i, code);
}

void crew_end(struct crew *c, int code)
{
    crew_expect(c, code);
    crew_release(c);
}

void crew_touch(const struct crew *c, const char *name)
{
    for (int i = 0; i < c->n; i++)
        if (c->started[i])
            run_touch(&c->runs[i], name);
}

void crew_wait_file(const struct crew *c, const char *name)
{
    for (int i = 0; i < c->n; i++)
        if (c->started[i])
            assert_true(run_wait_file(&c->runs[i], name));
}
