/* test_open.c - the configuration from an environment, the choice of transport, parts and exit codes. */
#include "collectives/noted.h"
#include "ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* getenv has no context, so neither has this. */
static const char *const *fake_env;

static char *fake_get(const char *name)
{
    static char value[64];

    for (const char *const *e = fake_env; *e; e++)
        if (strncmp(*e, name, strlen(name)) == 0 && (*e)[strlen(name)] == '=') {
            const char *text = *e + strlen(name) + 1;
            if (strcmp(name, "MASTER_ADDR") == 0 || strcmp(name, "TORCHELASTIC_RUN_ID") == 0 ||
                strcmp(name, "TORCHKEEPER_KEY_FILE") == 0)
                return (char *)(uintptr_t)text;
            snprintf(value, sizeof(value), "%s", text);
            return value;
        }
    return NULL;
}

static int read_env(struct collectives_config *cfg, struct err *err, const char *const *env)
{
    fake_env = env;
    *cfg = (struct collectives_config){0};
    return collectives_config_read(cfg, fake_get, err);
}

#define ENV(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_reads_the_launchers_environment(void **state)
{
    struct collectives_config cfg;
    struct err err = {0};

    (void)state;
    assert_int_equal(read_env(&cfg, &err, (const char *const[]){NULL}), 0);
    assert_true(cfg.rank == 0 && cfg.world == 1 && cfg.local_world == 1 && cfg.master_port == 29500);
    assert_int_equal(read_env(&cfg, &err,
                              ENV("RANK=5", "WORLD_SIZE=8", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=4",
                                  "GROUP_RANK=1", "MASTER_ADDR=10.0.0.1", "MASTER_PORT=1234",
                                  "TORCHELASTIC_RUN_ID=abc", "TORCHELASTIC_RESTART_COUNT=2")),
                     0);
    assert_true(cfg.rank == 5 && cfg.world == 8 && cfg.local_rank == 1 && cfg.local_world == 4);
    assert_true(cfg.group_rank == 1 && cfg.master_port == 1234 && cfg.restart_count == 2);
    assert_string_equal(cfg.run_id, "abc");
    assert_string_equal(cfg.master_addr, "10.0.0.1");
    /* Under PyTorch's own launcher that port is its agent's. */
    assert_int_equal(
        read_env(&cfg, &err,
                 ENV("RANK=1", "WORLD_SIZE=2", "MASTER_PORT=1234", "TORCHELASTIC_USE_AGENT_STORE=True")),
        0);
    assert_int_equal(cfg.master_port, 1235);
    assert_int_equal(
        read_env(&cfg, &err,
                 ENV("RANK=1", "WORLD_SIZE=2", "MASTER_PORT=1234", "TORCHELASTIC_USE_AGENT_STORE=False")),
        0);
    assert_int_equal(cfg.master_port, 1234);
    /* By hand: a loopback master is one host, any other a host per rank. */
    assert_int_equal(read_env(&cfg, &err, ENV("RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1")), 0);
    assert_true(cfg.local_rank == 1 && cfg.local_world == 2 && cfg.group_rank == 0);
    assert_int_equal(read_env(&cfg, &err, ENV("RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=pod-0", "LOCAL_RANK=0")),
                     0);
    assert_true(cfg.local_rank == 0 && cfg.local_world == 1 && cfg.group_rank == 1);
}

static void test_refuses_a_wrong_environment(void **state)
{
    static const struct {
        const char *env[4];
        const char *names;
    } cases[] = {
        {{"RANK=1"}, "WORLD_SIZE"},
        {{"WORLD_SIZE=2"}, "RANK"},
        {{"RANK=x", "WORLD_SIZE=2"}, "RANK=x"},
        {{"RANK=2", "WORLD_SIZE=2"}, "RANK=2"},
        {{"RANK=-1", "WORLD_SIZE=2"}, "RANK=-1"},
        {{"RANK=0", "WORLD_SIZE=0"}, "WORLD_SIZE=0"},
        {{"RANK=0", "WORLD_SIZE=99999999999"}, "WORLD_SIZE"},
        {{"RANK=0", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=3"}, "LOCAL_WORLD_SIZE=3"},
        {{"RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=2"}, "LOCAL_RANK=2"},
        {{"RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=1"}, "LOCAL_RANK=1: expected 0..0, at most RANK"},
        {{"RANK=1", "WORLD_SIZE=2", "MASTER_PORT=70000"}, "MASTER_PORT=70000"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct collectives_config cfg;
        struct err err = {0};
        assert_int_equal(read_env(&cfg, &err, cases[i].env), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_non_null(strstr(err.msg, cases[i].names));
    }
}

static void test_without_an_address(void **state)
{
    struct err err = {0};
    const struct collectives_config cfg = {.world = 2, .local_world = 1};

    (void)state;
    assert_null(collectives_open(&cfg, 1000, &err));
    assert_int_equal(err.kind, ERR_INVALID);
    assert_non_null(strstr(err.msg, "MASTER_ADDR is not set"));
}

static void test_solo(void **state)
{
    struct err err = {0};
    const struct collectives_config cfg = {.world = 1, .local_world = 1};
    float x[2] = {1, 2}, all[2] = {0};
    uint32_t flags = COLLECTIVES_STOP_TERM;
    cleanup_collectives struct collectives *c = collectives_open(&cfg, 0, &err);

    (void)state;
    assert_non_null(c);
    assert_string_equal(c->transport, "solo");
    assert_int_equal(c->all_reduce(c, x, 2, &flags, 0, &err), 0);
    assert_true(x[0] == 1 && x[1] == 2 && flags == COLLECTIVES_STOP_TERM);
    assert_int_equal(c->all_gather(c, x, sizeof(x), all, 0, &err), 0);
    assert_memory_equal(all, x, sizeof(x));
    assert_int_equal(c->barrier(c, 0, &err), 0);
    assert_int_equal(c->broadcast(c, x, sizeof(x), 0, 0, &err), 0);
    float *shared = c->shared(c, 100, 0, &err);
    assert_true(shared && (uintptr_t)shared % 64 == 0 && shared[99] == 0.0f);
    for (int i = 1; i < COLLECTIVES_SHARED_MAX; i++)
        assert_non_null(c->shared(c, 1, 0, &err));
    assert_null(c->shared(c, 1, 0, &err));
}

/* Ranks of another user than the launcher's may not read its memory; who is in one pod needs no key. */
static void test_a_key_that_cannot_be_read(void **state)
{
    struct collectives_config cfg;
    struct err err = {0};
    int code;

    (void)state;
    assert_int_equal(read_env(&cfg, &err, ENV("TORCHKEEPER_KEY_FILE=1/77")), 0);
    cleanup_collectives struct collectives *c = collectives_open(&cfg, 0, &err);
    assert_non_null(c);
    assert_int_equal(
        read_env(&cfg, &err,
                 ENV("RANK=1", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2", "TORCHKEEPER_KEY_FILE=1/77")),
        0);
    assert_null(collectives_open(&cfg, 0, &err));
    assert_int_equal(err.kind, ERR_TIMEOUT);
    cfg.rank = cfg.local_rank = 0;
    cfg.awaiting = 1;
    assert_null(collectives_open(&cfg, 0, &err));
    assert_int_equal(err.kind, ERR_INVALID);
    for (int i = 0; i < 2; i++) {
        err = (struct err){0};
        assert_int_equal(
            read_env(&cfg, &err,
                     ENV("RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=pod-0", "TORCHKEEPER_KEY_FILE=1/77")),
            0);
        if (i)
            assert_int_equal(collectives_await_end(&cfg, 1000, &code, &err), -1);
        else
            assert_null(collectives_open(&cfg, 1000, &err));
        assert_int_equal(err.kind, ERR_INVALID);
        assert_non_null(strstr(err.msg, "TORCHKEEPER_KEY_FILE=1/77: cannot read"));
    }
}

static int no_send(struct collectives *c, const void *bytes, size_t len, int to, int64_t timeout_ms,
                   struct err *err)
{
    (void)c, (void)bytes, (void)len, (void)to, (void)timeout_ms, (void)err;
    return -1;
}

static int no_recv(struct collectives *c, void *bytes, size_t len, int from, int64_t timeout_ms,
                   struct err *err)
{
    return no_send(c, bytes, len, from, timeout_ms, err);
}

/* What noted.h makes of a table's calls: each is begun and ended, a refused one too, and messages are no collectives. */
static void test_calls_are_noted(void **state)
{
    struct rank_slot *slot = rank_state_join(NULL);
    const struct collectives_config cfg = {.world = 1, .local_world = 1, .slot = slot};
    struct err err = {0};
    float x[4] = {0};
    double d[4] = {0};
    cleanup_collectives struct collectives *c = collectives_open(&cfg, 0, &err);

    (void)state;
    assert_non_null(c);
    assert_int_equal(slot->begun, 1);
    assert_int_equal(slot->ended, 1);
    assert_int_equal(collectives_all_reduce(c, x, 4, NULL, 0, &err), 0);
    assert_int_equal(collectives_all_reduce_f64(c, d, 4, 0, &err), 0);
    assert_int_equal(collectives_broadcast(c, x, sizeof(x), 0, 0, &err), 0);
    assert_int_equal(collectives_all_gather(c, x, 4, x, 0, &err), 0);
    assert_int_equal(collectives_barrier(c, 0, &err), 0);
    for (int i = 0; i < COLLECTIVES_SHARED_MAX; i++)
        assert_non_null(collectives_shared(c, 4, 0, &err));
    assert_null(collectives_shared(c, 4, 0, &err));
    assert_int_equal(slot->begun, 7 + COLLECTIVES_SHARED_MAX);
    assert_int_equal(slot->ended, 7 + COLLECTIVES_SHARED_MAX);
    assert_int_equal(slot->signs, 0);
    c->send = no_send;
    c->recv = no_recv;
    assert_int_equal(collectives_send(c, x, sizeof(x), 0, 0, &err), -1);
    assert_int_equal(collectives_recv(c, x, sizeof(x), 0, 0, &err), -1);
    assert_int_equal(slot->begun, 7 + COLLECTIVES_SHARED_MAX);
    assert_int_equal(slot->ended, 7 + COLLECTIVES_SHARED_MAX);
    assert_int_equal(slot->signs, 2);
}

static void test_parts_cover_everything_once(void **state)
{
    (void)state;
    for (int world = 1; world <= 17; world++)
        for (size_t n = 0; n < 600; n += n < 70 ? 1 : 37) {
            size_t at = 0, begin, end;
            for (int r = 0; r < world; r++) {
                collectives_part(n, r, world, &begin, &end);
                assert_true(begin == at && end >= begin && end <= n);
                at = end;
            }
            assert_int_equal(at, n);
        }
}

static void test_exit_codes(void **state)
{
    (void)state;
    assert_int_equal(collectives_exit_code(&(struct err){.kind = ERR_PEER}), 140);
    assert_int_equal(collectives_exit_code(&(struct err){.kind = ERR_TIMEOUT}), 138);
    assert_int_equal(collectives_exit_code(&(struct err){.kind = ERR_INVALID}), 1);
    assert_int_equal(collectives_exit_code(&(struct err){.kind = ERR_FATAL}), 1);
    assert_int_equal(collectives_exit_code(&(struct err){.kind = ERR_NONE}), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_the_launchers_environment),
        cmocka_unit_test(test_refuses_a_wrong_environment),
        cmocka_unit_test(test_without_an_address),
        cmocka_unit_test(test_solo),
        cmocka_unit_test(test_a_key_that_cannot_be_read),
        cmocka_unit_test(test_calls_are_noted),
        cmocka_unit_test(test_parts_cover_everything_once),
        cmocka_unit_test(test_exit_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
