/* test_options.c - the command line: every spelling, every default, every refusal. */
#include "common/contract.h"
#include "launcher/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const *fake_env;
static bool in_a_job = true; /* with a job's UID, which is the id where several nodes get none */

static char *fake_get(const char *name)
{
    for (const char *const *e = fake_env; e && *e; e++)
        if (strncmp(*e, name, strlen(name)) == 0 && (*e)[strlen(name)] == '=')
            return (char *)(uintptr_t)(*e + strlen(name) + 1);
    if (in_a_job && strcmp(name, CONTRACT_ENV_JOB_UID) == 0)
        return (char *)(uintptr_t) "uid";
    return NULL;
}

static int parse(struct arena *a, struct options *o, struct err *err, int gpus, const char *const *words)
{
    const struct options_host host = {.get = fake_get, .cpus = 6, .gpus = gpus};
    int argc = 0;

    while (words[argc])
        argc++;
    return options_parse(argc, (char *const *)(uintptr_t)words, &host, a, o, err);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void parse_ok(struct arena *a, struct options *o, const char *const *words)
{
    struct err err = {0};

    if (parse(a, o, &err, 0, words) < 0)
        fail_msg("%s", err.msg);
}

static void test_defaults(void **state)
{
    cleanup_arena struct arena a = {0};
    struct options o;

    (void)state;
    parse_ok(&a, &o, WORDS("torchrun", "prog", "--nnodes=7", "-x"));
    assert_true(o.nnodes == 1 && o.nproc == 1 && o.node_rank == 0 && o.max_restarts == 0);
    assert_null(o.run_id); /* a fresh one, and a free port: two launches on a host do not meet */
    assert_string_equal(o.master_addr, "127.0.0.1");
    assert_int_equal(o.master_port, 0);
    assert_int_equal(o.shutdown_timeout_ms, 20000);
    assert_string_equal(o.role, "default");
    assert_int_equal(o.program_kind, PROGRAM_EXECUTABLE);
    assert_true(sigismember(&o.signals, SIGTERM) && sigismember(&o.signals, SIGINT) &&
                sigismember(&o.signals, SIGHUP) && sigismember(&o.signals, SIGQUIT));
    assert_true(o.shown[0] && o.redirects[0] == 0 && o.tee[0] == 0);
    /* What follows the program is the program's. */
    assert_string_equal(o.program[0], "prog");
    assert_string_equal(o.program[1], "--nnodes=7");
    assert_string_equal(o.program[2], "-x");
    assert_null(o.program[3]);
}

static void test_both_spellings(void **state)
{
    static const char *const forms[][6] = {
        {"torchrun", "--nproc_per_node=3", "p", NULL},
        {"torchrun", "--nproc-per-node=3", "p", NULL},
        {"torchrun", "--nproc_per_node", "3", "p", NULL},
        {"torchrun", "--nproc-per-node", "3", "p", NULL},
        {"torchrun", "--nproc-per_node", "3", "--", "p", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        cleanup_arena struct arena a = {0};
        struct options o;
        parse_ok(&a, &o, forms[i]);
        assert_int_equal(o.nproc, 3);
        assert_string_equal(o.program[0], "p");
    }
}

/* Several nodes have an id of their own, unless they are on one host or have a key. */
static void test_the_id_of_a_run(void **state)
{
    static const char KEY[] =
        "TORCHKEEPER_JOB_KEY=000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f";
    static const struct {
        const char *env, *words[6], *id; /* id NULL: refused */
    } cases[] = {
        {NULL, {"torchrun", "--nnodes=2", "--master-addr=h", "p"}, NULL},
        {NULL, {"torchrun", "--nnodes=2", "--rdzv-id=none", "--master-addr=10.0.0.1", "p"}, NULL},
        {NULL, {"torchrun", "--nnodes=1:2", "--rdzv-backend=c10d", "--rdzv-endpoint=h", "p"}, NULL},
        {NULL, {"torchrun", "--nnodes=2", "--rdzv-id=x", "--master-addr=h", "p"}, "x"},
        {NULL, {"torchrun", "--nnodes=2", "p"}, "none"},
        {NULL, {"torchrun", "--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:1", "p"}, "none"},
        {NULL, {"torchrun", "--nnodes=1", "--rdzv-backend=c10d", "--rdzv-endpoint=h", "p"}, "none"},
        {KEY, {"torchrun", "--nnodes=2", "--master-addr=h", "p"}, "none"},
        {"PTJ_JOB_UID=a-uid", {"torchrun", "--nnodes=2", "--master-addr=h", "p"}, "a-uid"},
        {"PTJ_JOB_UID=a-uid", {"torchrun", "--nnodes=2", "--rdzv-id=x", "--master-addr=h", "p"}, "x"},
    };

    (void)state;
    in_a_job = false;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_arena struct arena a = {0};
        struct options o;
        struct err err = {0};
        fake_env = WORDS(cases[i].env);
        const int rc = parse(&a, &o, &err, 0, cases[i].words);
        if (!cases[i].id) {
            assert_int_equal(rc, -1);
            assert_non_null(strstr(err.msg, "--rdzv-id"));
        } else if (rc < 0)
            fail_msg("%d: %s", (int)i, err.msg);
        else
            assert_string_equal(o.run_id, cases[i].id);
        if (rc == 0)
            assert_int_equal(o.meeting.key.has, cases[i].env == KEY);
    }
    fake_env = WORDS("TORCHKEEPER_JOB_KEY=5ecre7");
    cleanup_arena struct arena a = {0};
    struct options o;
    struct err err = {0};
    assert_int_equal(parse(&a, &o, &err, 0, WORDS("torchrun", "p")), -1);
    assert_non_null(strstr(err.msg, "TORCHKEEPER_JOB_KEY: "));
    assert_null(strstr(err.msg, "5ecre7"));
    fake_env = NULL;
    in_a_job = true;
}

static void test_every_option_is_accepted_or_refused_by_name(void **state)
{
    (void)state;
    for (int i = 0; i < N_OPTIONS; i++) {
        cleanup_arena struct arena a = {0};
        struct options o;
        struct err err = {0};
        char word[80];
        snprintf(word, sizeof(word), "--%s%s", option_rows[i].name, option_rows[i].meta ? "=\x01" : "");
        if (parse(&a, &o, &err, 1, WORDS("torchrun", word, "p")) < 0) {
            assert_int_equal(err.kind, ERR_INVALID);
            if (!strstr(err.msg, option_rows[i].name))
                fail_msg("%s: %s", word, err.msg);
        }
        assert_true(strlen(option_rows[i].help) > 0 && option_rows[i].group);
    }
}

static void test_values_from_the_environment(void **state)
{
    cleanup_arena struct arena a = {0};
    struct options o;
    struct err err = {0};

    (void)state;
    fake_env = WORDS("PET_NPROC_PER_NODE=5", "PET_NNODES=2", "PET_NODE_RANK=1", "PET_MASTER_ADDR=pod-0",
                     "PET_MASTER_PORT=1234", "PET_STANDALONE=0", "PET_NO_PYTHON=1");
    parse_ok(&a, &o, WORDS("torchrun", "--nproc-per-node=2", "train.py"));
    assert_true(o.nproc == 2 && o.nnodes == 2 && o.node_rank == 1 && o.master_port == 1234);
    assert_string_equal(o.master_addr, "pod-0");
    assert_false(o.standalone);
    assert_int_equal(o.program_kind, PROGRAM_EXECUTABLE);
    fake_env = WORDS("TORCH_ELASTIC_SHUTDOWN_TIMEOUT=7");
    parse_ok(&a, &o, WORDS("torchrun", "p"));
    assert_int_equal(o.shutdown_timeout_ms, 7000);
    parse_ok(&a, &o, WORDS("torchrun", "--shutdown-timeout=3", "p"));
    assert_int_equal(o.shutdown_timeout_ms, 3000);
    fake_env = WORDS("TORCH_ELASTIC_SHUTDOWN_TIMEOUT=soon");
    assert_int_equal(parse(&a, &o, &err, 0, WORDS("torchrun", "p")), -1);
    assert_non_null(strstr(err.msg, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=soon"));
    fake_env = WORDS("TORCHKEEPER_PROGRESS_TIMEOUT=300");
    parse_ok(&a, &o, WORDS("torchrun", "p"));
    assert_int_equal(o.progress_timeout_ms, 300000);
    fake_env = WORDS("TORCHKEEPER_PROGRESS_TIMEOUT=");
    parse_ok(&a, &o, WORDS("torchrun", "p"));
    assert_int_equal(o.progress_timeout_ms, 0);
    for (int i = 0; i < 4; i++) {
        fake_env = i == 0   ? WORDS("TORCHKEEPER_PROGRESS_TIMEOUT=0")
                   : i == 1 ? WORDS("TORCHKEEPER_PROGRESS_TIMEOUT=-1")
                   : i == 2 ? WORDS("TORCHKEEPER_PROGRESS_TIMEOUT=1.5")
                            : WORDS("TORCHKEEPER_PROGRESS_TIMEOUT=604801");
        assert_int_equal(parse(&a, &o, &err, 0, WORDS("torchrun", "p")), -1);
        assert_non_null(strstr(err.msg, "TORCHKEEPER_PROGRESS_TIMEOUT="));
    }
    for (int i = 0; i < 6; i++) { /* the last one is right */
        const char *const orders[][2] = {{"PTJ_NODE_ORDER=-1"}, {"PTJ_NODE_ORDER=2000"},
                                         {"PTJ_NODE_ORDER=1x"}, {"PTJ_NODE_ORDER= 1"},
                                         {"PTJ_NODE_ORDER="},   {"PTJ_NODE_ORDER=1999"}};
        fake_env = orders[i];
        parse_ok(&a, &o, WORDS("torchrun", "--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=h", "p"));
        assert_int_equal(o.meeting.order, i == 5 ? 1999 : -1);
        assert_int_equal(o.warnings, i < 4);
        parse_ok(&a, &o, WORDS("torchrun", "--nnodes=2", "--node-rank=1", "--rdzv-endpoint=h:1", "p"));
        assert_true(o.meeting.order == 1 && o.warnings == 0);
    }
    fake_env = WORDS("PET_MAX_RESTARTS=many");
    assert_int_equal(parse(&a, &o, &err, 0, WORDS("torchrun", "p")), -1);
    assert_non_null(strstr(err.msg, "PET_"));
    fake_env = NULL;
}

/* As a ConfigMap, a file or a shell leaves them. Texts that go before or are searched in lines keep their blanks. */
static void test_blanks_around_values(void **state)
{
    cleanup_arena struct arena a = {0};
    struct options o;
    struct err err = {0};

    (void)state;
    fake_env =
        WORDS("PET_NNODES=2 ", "PET_NPROC_PER_NODE= 3\n", "PET_NODE_RANK=\t1", "PET_MAX_RESTARTS=4\r\n",
              "PET_RDZV_BACKEND=c10d\n", "PET_RDZV_ENDPOINT= job-0:29412\n", "PET_RDZV_ID= job \n",
              "PET_RDZV_CONF= join_timeout = 7 , is_host = 1\n", "PET_NO_PYTHON=1\n", "PET_ROLE= \n",
              "TORCH_ELASTIC_SHUTDOWN_TIMEOUT= 9\n", "TORCHKEEPER_PROGRESS_TIMEOUT=11\n");
    parse_ok(&a, &o, WORDS("torchrun", "train.py"));
    assert_true(o.nnodes == 2 && o.nproc == 3 && o.max_restarts == 4 && !o.is_static);
    assert_string_equal(o.meeting.host, "job-0");
    assert_string_equal(o.run_id, "job");
    assert_string_equal(o.role, "default");
    assert_true(o.meeting.port == 29412 && o.meeting.join_ms == 7000 && o.meeting.is_host == 1);
    assert_true(o.shutdown_timeout_ms == 9000 && o.progress_timeout_ms == 11000);
    assert_int_equal(o.program_kind, PROGRAM_EXECUTABLE);
    fake_env = WORDS("PET_MASTER_ADDR= 10.0.5.4", "PET_LOG_LINE_PREFIX_TEMPLATE= [${rank}] ");
    parse_ok(&a, &o,
             WORDS("torchrun", "--nnodes", " 2 : 2 ", "--node-rank= 1", "--local-addr=h\n",
                   "--tee= 0:3 , 1:1\n", "--nproc-per-node=auto ", "--signals-to-handle= SIGTERM , SIGUSR1",
                   "--duplicate-stdout-filters= x", "p"));
    assert_string_equal(o.master_addr, "10.0.5.4");
    assert_string_equal(o.meeting.local_addr, "h");
    assert_string_equal(o.prefix_template, " [${rank}] ");
    assert_string_equal(o.filters[0][0], " x");
    assert_true(o.nnodes == 2 && o.nproc == 6 && o.tee[0] == STD_BOTH && o.tee[1] == STD_OUT);
    fake_env = WORDS("PET_NNODES=1 2");
    assert_int_equal(parse(&a, &o, &err, 0, WORDS("torchrun", "p")), -1);
    assert_non_null(strstr(err.msg, "--nnodes=1 2 (from its PET_ variable)"));
    fake_env = NULL;
}

/* With brackets where a port may follow, with or without where none does. */
static void test_addresses_of_ipv6(void **state)
{
    static const struct {
        const char *endpoint, *host;
        int port;
    } good[] = {{"[::1]", "::1", 29400},
                {"[::1]:1234", "::1", 1234},
                {"[fd00::a:1]:0", "fd00::a:1", 29400},
                {"[fe80::1%eth0]:7", "fe80::1%eth0", 7},
                {"job-0.job", "job-0.job", 29400},
                {"10.0.0.1:7", "10.0.0.1", 7}};
    static const char *const bad[] = {"::1",
                                      "fd00::1:29400",
                                      "[::1",
                                      "[]",
                                      "[]:1",
                                      "[::1]1",
                                      "[::1]:",
                                      "[job-0]:1",
                                      "[::1]:1:2",
                                      "a:1:2",
                                      "tcp://job-0:29400",
                                      ":1",
                                      "[10.0.0.1]:1"};
    static const struct {
        const char *given, *want;
    } addresses[] = {
        {"[::1]", "::1"}, {"fd00::1", "fd00::1"}, {"fe80::1%eth0", "fe80::1%eth0"}, {"job-0", "job-0"}};
    static const char *const no_address[] = {"job-0:29500", "[::1]:29500", "[job-0]",
                                             "fd00::1::2",  "[::1",        "10.0.0.1:1"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        cleanup_arena struct arena a = {0};
        struct options o;
        parse_ok(
            &a, &o,
            WORDS("torchrun", "--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint", good[i].endpoint, "p"));
        assert_string_equal(o.meeting.host, good[i].host);
        assert_int_equal(o.meeting.port, good[i].port);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        cleanup_arena struct arena a = {0};
        struct options o;
        struct err err = {0};
        if (parse(&a, &o, &err, 0, WORDS("torchrun", "--nnodes=2", "--rdzv-endpoint", bad[i], "p")) == 0)
            fail_msg("%s", bad[i]);
        assert_non_null(strstr(err.msg, "HOST or HOST:PORT"));
        assert_non_null(strstr(err.msg, "[fd00::1]:29400"));
    }
    for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
        cleanup_arena struct arena a = {0};
        struct options o;
        parse_ok(&a, &o,
                 WORDS("torchrun", "--nnodes=2", "--master-addr", addresses[i].given, "--local-addr",
                       addresses[i].given, "p"));
        assert_string_equal(o.master_addr, addresses[i].want);
        assert_string_equal(o.meeting.host, addresses[i].want);
        assert_string_equal(o.meeting.local_addr, addresses[i].want);
    }
    for (size_t i = 0; i < 2 * ARRAY_LEN(no_address); i++) {
        cleanup_arena struct arena a = {0};
        struct options o;
        struct err err = {0};
        const char *name = i % 2 ? "--master-addr" : "--local-addr";
        if (parse(&a, &o, &err, 0, WORDS("torchrun", "--nnodes=2", name, no_address[i / 2], "p")) == 0)
            fail_msg("%s", no_address[i / 2]);
        assert_non_null(strstr(err.msg, name));
        assert_non_null(strstr(err.msg, "fd00::1"));
    }
}

/* A PET_ variable of a flag is a number; of three options PyTorch reads none, so it is no reason to refuse anything. */
static void test_flags_from_the_environment(void **state)
{
    static const struct {
        const char *variable;
        int kind; /* -1: refused */
    } cases[] = {
        {"PET_MODULE=1", PROGRAM_PYTHON_MODULE},
        {"PET_MODULE=0", PROGRAM_PYTHON_FILE},
        {"PET_MODULE=00", PROGRAM_PYTHON_FILE},
        {"PET_MODULE=2", PROGRAM_PYTHON_MODULE},
        {"PET_MODULE=", PROGRAM_PYTHON_FILE},
        {"PET_MODULE=true", -1},
        {"PET_STANDALONE=yes", -1},
        {"PET_NUMA_BINDING=node", PROGRAM_PYTHON_FILE},
        {"PET_LOGS_SPECS=x", PROGRAM_PYTHON_FILE},
        {"PET_RUN_PATH=1", PROGRAM_PYTHON_RUN_PATH},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_arena struct arena a = {0};
        struct options o;
        struct err err = {0};
        fake_env = WORDS(cases[i].variable);
        int rc = parse(&a, &o, &err, 0, WORDS("torchrun", "train.py"));
        fake_env = NULL;
        if (rc == 0 ? (int)o.program_kind != cases[i].kind
                    : cases[i].kind >= 0 || !strstr(err.msg, "(from its PET_ variable): expected 0 or 1"))
            fail_msg("%s: %d, \"%s\"", cases[i].variable, rc, err.msg);
    }
    cleanup_arena struct arena a = {0};
    struct options o;
    fake_env = WORDS("PET_USE_ENV=1");
    parse_ok(&a, &o, WORDS("launch", "train.py"));
    fake_env = NULL;
    assert_true(o.local_rank_argument);
}

/* What argparse takes for an option's value, and for which letters. */
static void test_words_as_argparse_reads_them(void **state)
{
    static const struct {
        const char *words[6];
        const char *role; /* NULL: refused */
        const char *program;
    } cases[] = {
        {{"torchrun", "--role", "-x", "p"}, NULL, ""},
        {{"torchrun", "--role", "--nnodes=1", "p"}, NULL, ""},
        {{"torchrun", "--role", "--", "p"}, NULL, ""},
        {{"torchrun", "-t", "-m", "p"}, NULL, ""},
        {{"torchrun", "--role=-x", "p"}, "-x", "p"},
        {{"torchrun", "--role", "-", "p"}, "-", "p"},
        {{"torchrun", "--role", "-1", "p"}, "-1", "p"},
        {{"torchrun", "--role", "-.5", "p"}, "-.5", "p"},
        {{"torchrun", "--role", "-a b", "p"}, "-a b", "p"},
        {{"torchrun", "-mt3", "p"}, "default", "p"},
        {{"torchrun", "-mr", "3", "p"}, "default", "p"},
        {{"torchrun", "-mx", "p"}, NULL, ""},
        {{"torchrun", "-m=1", "p"}, NULL, ""},
        {{"torchrun", "p", "--", "-x"}, "default", "p|-x"},
        {{"torchrun", "p", "--", "--", "-x"}, "default", "p|--|-x"},
        {{"torchrun", "p", "x", "--", "-x"}, "default", "p|x|--|-x"},
        {{"torchrun", "--", "p", "--", "-x"}, "default", "p|--|-x"},
        {{"torchrun", "p", "--"}, "default", "p"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_arena struct arena a = {0};
        struct options o = {0};
        struct err err = {0};
        char program[80] = "";
        int rc = parse(&a, &o, &err, 0, cases[i].words);
        for (int j = 0; rc == 0 && o.program[j]; j++)
            snprintf(program + strlen(program), sizeof(program) - strlen(program), "%s%s", j ? "|" : "",
                     o.program[j]);
        if ((rc == 0) != (cases[i].role != NULL) || (rc == 0 && strcmp(o.role, cases[i].role) != 0) ||
            strcmp(program, cases[i].program) != 0)
            fail_msg("case %zu: %d, %s, \"%s\"", i, rc, program, err.msg);
    }
}

static void test_what_the_operator_writes(void **state)
{
    cleanup_arena struct arena a = {0};
    struct options o;

    (void)state;
    parse_ok(&a, &o,
             WORDS("torchrun", "--nnodes=1:1", "--nproc_per_node=4", "--max_restarts=3",
                   "--rdzv_backend=c10d", "--rdzv_endpoint=mnist-node-0.mnist-rdzv:29400", "--rdzv_id=0b6f-2",
                   "--rdzv_conf=is_host=true,read_timeout=600,join_timeout=3600", "trainer", "mnist-cnn"));
    assert_true(o.nnodes == 1 && o.nproc == 4 && o.max_restarts == 3);
    assert_string_equal(o.run_id, "0b6f-2");
    assert_string_equal(o.master_addr, "127.0.0.1");
    assert_int_equal(o.master_port, 0);
    parse_ok(&a, &o,
             WORDS("torchrun", "--nnodes=3", "--nproc_per_node=2", "--rdzv_backend", "static",
                   "--node_rank=2", "--master_addr=job-0.job-rdzv", "--master_port=29500", "p"));
    assert_true(o.nnodes == 3 && o.node_rank == 2 && o.master_port == 29500);
    assert_string_equal(o.master_addr, "job-0.job-rdzv");
    parse_ok(&a, &o, WORDS("torchrun", "--nnodes=2", "--rdzv-endpoint=[fd00::1]:77", "p"));
    assert_string_equal(o.master_addr, "fd00::1");
    assert_int_equal(o.master_port, 77);
}

static void test_how_nodes_meet(void **state)
{
    cleanup_arena struct arena a = {0};
    struct options o;

    (void)state;
    parse_ok(&a, &o,
             WORDS("torchrun", "--nnodes=2:4", "--nproc_per_node=2", "--max_restarts=3",
                   "--rdzv_backend=c10d", "--rdzv_endpoint=mnist-node-0.mnist-rdzv:29400", "--rdzv_id=0b6f-2",
                   "--rdzv_conf=is_host=true,read_timeout=600,join_timeout=3600,join_timeout=10", "p"));
    assert_true(o.meeting.needed && o.nnodes_min == 2 && o.nnodes == 4 && o.meeting.is_host == 1);
    assert_string_equal(o.meeting.host, "mnist-node-0.mnist-rdzv");
    assert_int_equal(o.meeting.port, 29400);
    assert_int_equal(o.meeting.join_ms, 10000);
    assert_int_equal(o.meeting.last_call_ms, 30000);
    assert_int_equal(o.meeting.keep_alive_ms, 5000);
    assert_int_equal(o.meeting.keep_alive_attempts, 3);
    assert_null(o.master_addr);
    assert_int_equal(o.master_port, 0);
    parse_ok(&a, &o,
             WORDS("torchrun", "--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=h",
                   "--rdzv-conf=last_call_timeout=0.5,keep_alive_interval=0.25,keep_alive_max_attempt=4",
                   "p"));
    assert_int_equal(o.meeting.port, 29400);
    assert_int_equal(o.meeting.is_host, -1);
    assert_int_equal(o.meeting.last_call_ms, 500);
    assert_int_equal(o.meeting.keep_alive_ms, 250);
    assert_int_equal(o.meeting.keep_alive_attempts, 4);
    /* Static: never at MASTER_PORT, wherever that is; node 0 hosts. */
    static const struct {
        const char *endpoint, *master_port;
        int port, want_master;
    } cases[] = {{"--rdzv-endpoint=h:29400", "--master-port=29500", 29400, 29500},
                 {"--rdzv-endpoint=h:29500", "--role=r", 29400, 29500},
                 {"--rdzv-endpoint=h", "--master-port=50", 150, 50},
                 {"--rdzv-endpoint=h:1000", "--master-port=1000", 900, 1000},
                 {"--role=r", "--master-port=1234", 1134, 1234}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        parse_ok(
            &a, &o,
            WORDS("torchrun", "--nnodes=2", "--node-rank=1", cases[i].endpoint, cases[i].master_port, "p"));
        assert_int_equal(o.meeting.port, cases[i].port);
        assert_int_equal(o.master_port, cases[i].want_master);
        assert_int_equal(o.meeting.is_host, 0);
    }
    parse_ok(&a, &o, WORDS("torchrun", "--nnodes=2", "--rdzv-conf=timeout=7", "p"));
    assert_int_equal(o.meeting.join_ms, 7000);
    assert_int_equal(o.meeting.is_host, 1);
    parse_ok(&a, &o, WORDS("torchrun", "p"));
    assert_false(o.meeting.needed);
}

static void test_how_many_ranks(void **state)
{
    static const struct {
        const char *word;
        int gpus, want; /* 0: refused */
    } cases[] = {{"auto", 0, 6}, {"auto", 8, 8},    {"cpu", 8, 6},  {"gpu", 8, 8}, {"gpu", 0, 0}, {"0", 8, 0},
                 {"-1", 8, 0},   {"1024", 0, 1024}, {"1025", 0, 0}, {"xpu", 8, 0}, {"4x", 8, 0},  {"", 8, 0}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_arena struct arena a = {0};
        struct options o;
        struct err err = {0};
        int rc =
            parse(&a, &o, &err, cases[i].gpus, WORDS("torchrun", "--nproc_per_node", cases[i].word, "p"));
        assert_int_equal(rc, cases[i].want ? 0 : -1);
        if (cases[i].want)
            assert_int_equal(o.nproc, cases[i].want);
        else
            assert_non_null(strstr(err.msg, "nproc-per-node"));
    }
}

static void test_refusals(void **state)
{
    static const struct {
        const char *words[5];
        const char *says;
    } cases[] = {
        {{"torchrun"}, "no program"},
        {{"torchrun", "--nproc-per-node"}, "expected a value"},
        {{"torchrun", "--bogus=1", "p"}, "--bogus: unknown option (torchrun --help)"},
        {{"torchrun", "-x", "p"}, "-x: unknown option (torchrun --help)"},
        {{"torchrun", "--max_restartz=4", "p"},
         "--max_restartz: unknown option; did you mean --max-restarts? (torchrun --help)"},
        {{"torchrun", "--no=4", "p"}, "--no: expected one of --node-rank, --no-python"},
        {{"torchrun", "--master", "h", "p"}, "--master: expected one of --master-addr, --master-port"},
        {{"torchrun", "--=4", "p"}, "unknown option"},
        {{"torchrun", "--nproc-per-nodes", "4", "p"}, "; did you mean --nproc-per-node? (torchrun --help)"},
        {{"torchrun", "--nproc-per-node=gpu", "p"},
         "GPUs on this node, and 0 are visible (/dev/nvidia0, CUDA_VISIBLE_DEVICES): give the container "
         "some"},
        {{"torchrun", "--nproc-per-node=GPU", "p"}, "auto, cpu or gpu; did you mean gpu?"},
        {{"torchrun", "--rdzv-backend=c10", "p"}, "static or c10d; did you mean c10d?"},
        {{"torchrun", "--standalone=1", "p"}, "takes no value"},
        {{"torchrun", "--nnodes=1:4", "p"}, "elastic"},
        {{"torchrun", "--standalone", "--nnodes=2:4", "p"}, "--standalone"},
        {{"torchrun", "--nnodes=4:1", "p"}, "MAX not below MIN"},
        {{"torchrun", "--nnodes=0", "p"}, "--nnodes=0"},
        {{"torchrun", "--nnodes=2", "--rdzv-backend=c10d", "p"}, "--rdzv-endpoint"},
        {{"torchrun", "--nnodes=2001", "p"}, "at most 2000"},
        {{"torchrun", "--rdzv-conf=is_host=maybe", "p"}, "is_host=true"},
        {{"torchrun", "--rdzv-conf=join_timeout=0", "p"}, "above 0"},
        {{"torchrun", "--rdzv-conf=timeout=0", "--master-port=1", "p"}, "above 0"},
        {{"torchrun", "--rdzv-conf=join_timeout=soon", "p"}, "above 0"},
        {{"torchrun", "--rdzv-conf=keep_alive_max_attempt=0", "p"}, "1..1000"},
        {{"torchrun", "--rdzv-backend=etcd-v2", "p"}, "without an etcd server"},
        {{"torchrun", "--rdzv-backend=zeus", "p"}, "static or c10d"},
        {{"torchrun", "--node-rank=1", "--master-port=1", "p"}, "--node-rank=1"},
        {{"torchrun", "--nnodes=2", "--node-rank=2", "p"}, "expected 0..1"},
        {{"torchrun", "--standalone", "--nnodes=2", "p"}, "--standalone"},
        {{"torchrun", "--rdzv-conf=nonsense", "p"}, "key=value"},
        {{"torchrun", "--rdzv-endpoint=host:99999999", "p"}, "HOST:PORT"},
        {{"torchrun", "--rdzv-endpoint=:1", "p"}, "HOST:PORT"},
        {{"torchrun", "--master-port=0", "p"}, "1..65535"},
        {{"torchrun", "--max-restarts=-1", "p"}, "--max-restarts=-1"},
        {{"torchrun", "--shutdown-timeout=nan", "p"}, "seconds"},
        {{"torchrun", "--start-method=magic", "p"}, "forkserver"},
        {{"torchrun", "--numa-binding=node", "p"},
         "--numa-binding=node: expected the option to be left out: this launcher does not bind ranks to "
         "CPUs"},
        {{"torchrun", "--print-completion=fish"}, "bash, zsh or tcsh"},
        {{"torchrun", "--logs-specs=mine", "p"}, "Python plugins"},
        {{"torchrun", "--event-log-handler=console", "p"}, "Python's log handlers"},
        {{"torchrun", "-m", "--no-python", "p"}, "at most one"},
        {{"launch", "--no-python", "p"}, "--no-python: expected --use-env too"},
        {{"torchrun", "-r", "4", "p"}, "redirects"},
        {{"torchrun", "-t", "1:4", "p"}, "RANK:0..3"},
        {{"torchrun", "--local-ranks-filter=a", "p"}, "local-ranks-filter"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_arena struct arena a = {0};
        struct options o;
        struct err err = {0};
        assert_int_equal(parse(&a, &o, &err, 0, cases[i].words), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        if (!strstr(err.msg, cases[i].says))
            fail_msg("%s: got \"%s\"", cases[i].says, err.msg);
    }
}

/* What PyTorch's takes and this launcher has no use for, or for fewer ranks. */
static void test_leniencies(void **state)
{
    static const struct {
        const char *words[5];
        const char *warns; /* NULL: says nothing */
    } cases[] = {
        {{"torchrun", "--rdzv-conf=color=red,join_timeout=9", "p"}, "color is not a setting"},
        {{"torchrun", "--rdzv-conf=\"timeout=9\"", "p"}, "\"timeout is not a setting"},
        {{"torchrun", "--rdzv-conf=timeout=\"9\"", "p"}, "timeout has no effect: expected times in seconds"},
        {{"torchrun", "--rdzv-conf=timeout=soon", "--rdzv-backend=c10d", "p"}, "timeout has no effect"},
        {{"torchrun", "--rdzv-conf=join_timeout=9\"", "--master-port=1", "p"}, "join_timeout has no effect"},
        {{"torchrun", "--rdzv-conf=is_host=maybe", "--master-port=1", "p"}, "is_host has no effect"},
        {{"torchrun", "--node_rank=1", "p"}, "--node-rank=1 has no effect"},
        {{"torchrun", "--standalone", "--nnodes=1:4", "p"}, NULL},
        {{"torchrun", "--standalone", "--rdzv-backend=etcd", "p"}, NULL},
        {{"torchrun", "--rdzv-conf=  ", "p"}, NULL},
        {{"torchrun", "--signals-to-handle=SIGTERM,SIGFOO", "p"}, "SIGFOO is not handled"},
        {{"torchrun", "-r", "1:1", "p"}, NULL},
        {{"torchrun", "--log-dir", "/dev/null", "p"}, NULL},
        {{"torchrun", "--nnode=1", "--redirect=3", "p"}, NULL},
        {{"torchrun", "--nproc", "1", "p"}, NULL},
        {{"torchrun", "--no-py", "p"}, NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_arena struct arena a = {0};
        struct options o;
        parse_ok(&a, &o, cases[i].words);
        assert_int_equal(o.warnings, cases[i].warns != NULL);
        if (cases[i].warns && !strstr(o.warning[0], cases[i].warns))
            fail_msg("%s: got \"%s\"", cases[i].warns, o.warning[0]);
        assert_true(o.nnodes == 1 && o.nnodes_min == 1 && o.node_rank == 0 && !o.meeting.needed);
        assert_true(sigismember(&o.signals, SIGTERM) && !o.log_dir);
    }
}

static void test_a_watchdog_that_is_not_there(void **state)
{
    cleanup_arena struct arena a = {0};
    struct options o;

    (void)state;
    for (int on = 0; on < 2; on++) {
        fake_env = WORDS(on ? "TORCHELASTIC_ENABLE_FILE_TIMER=1" : "TORCHELASTIC_ENABLE_FILE_TIMER=0");
        parse_ok(&a, &o, WORDS("torchrun", "p"));
        fake_env = NULL;
        assert_int_equal(o.warnings, on);
    }
    assert_non_null(strstr(o.warning[0], "TORCHELASTIC_ENABLE_FILE_TIMER=1 has no effect"));
}

static void test_a_gpu_for_each_virtual_rank(void **state)
{
    static const struct {
        const char *visible;
        int gpus, ranks;
        bool good;
    } cases[] = {
        {NULL, 2, 2, true},
        {NULL, 2, 3, false},
        {NULL, 0, 3, true},
        {"CUDA_VISIBLE_DEVICES=3,1", 2, 2, true},
        {"CUDA_VISIBLE_DEVICES=3,1", 2, 3, false},
        {"CUDA_VISIBLE_DEVICES=", 0, 2, false},
        {"CUDA_VISIBLE_DEVICES=", 0, 1, true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_arena struct arena a = {0};
        const char *env[] = {cases[i].visible, NULL};
        char ranks[8];
        struct options o;
        struct err err = {0};
        snprintf(ranks, sizeof(ranks), "%d", cases[i].ranks);
        fake_env = env;
        int rc = parse(&a, &o, &err, cases[i].gpus,
                       WORDS("torchrun", "--virtual-local-rank", "--nproc-per-node", ranks, "p"));
        fake_env = NULL;
        if ((rc == 0) != cases[i].good || (rc && !strstr(err.msg, "--virtual-local-rank: ")))
            fail_msg("case %zu: %d, \"%s\"", i, rc, err.msg);
    }
}

static void test_program_kinds(void **state)
{
    cleanup_arena struct arena a = {0};
    struct options o;

    (void)state;
    parse_ok(&a, &o, WORDS("torchrun", "train.py"));
    assert_int_equal(o.program_kind, PROGRAM_PYTHON_FILE);
    parse_ok(&a, &o, WORDS("torchrun", "--no_python", "train.py"));
    assert_int_equal(o.program_kind, PROGRAM_EXECUTABLE);
    parse_ok(&a, &o, WORDS("torchrun", "-m", "pkg.train"));
    assert_int_equal(o.program_kind, PROGRAM_PYTHON_MODULE);
    parse_ok(&a, &o, WORDS("torchrun", "--run-path", "train.py"));
    assert_int_equal(o.program_kind, PROGRAM_PYTHON_RUN_PATH);
    assert_false(o.local_rank_argument);
    parse_ok(&a, &o, WORDS("torchrun", "--run-path", "--no-python", "-m", "train.py"));
    assert_int_equal(o.program_kind, PROGRAM_PYTHON_RUN_PATH); /* it takes precedence */
    parse_ok(&a, &o, WORDS("launch", "--no-python", "--use-env", "p"));
    assert_false(o.local_rank_argument);
    parse_ok(&a, &o, WORDS("/usr/bin/launch", "train.py"));
    assert_true(o.local_rank_argument);
    parse_ok(&a, &o, WORDS("torch.distributed.launch", "--use-env", "train.py"));
    assert_false(o.local_rank_argument);
}

static void test_maps_of_streams(void **state)
{
    cleanup_arena struct arena a = {0};
    struct options o;

    (void)state;
    parse_ok(
        &a, &o,
        WORDS("torchrun", "--nproc-per-node=16", "-r", "3", "-t0:1,12:3", "--local-ranks-filter=2,15", "p"));
    for (int i = 0; i < 16; i++) {
        assert_int_equal(o.redirects[i], STD_BOTH);
        assert_int_equal(o.tee[i], i == 0 ? STD_OUT : i == 12 ? STD_BOTH : STD_NONE);
        assert_int_equal(o.shown[i], i == 2 || i == 15);
    }
}

static void test_standalone_and_help(void **state)
{
    cleanup_arena struct arena a = {0};
    struct options o;

    (void)state;
    parse_ok(&a, &o, WORDS("torchrun", "--standalone", "p"));
    assert_null(o.run_id);
    assert_int_equal(o.master_port, 0);
    parse_ok(&a, &o, WORDS("torchrun", "--help", "--bogus"));
    assert_true(o.help);
    parse_ok(&a, &o, WORDS("torchrun", "-h"));
    assert_true(o.help);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_both_spellings),
        cmocka_unit_test(test_the_id_of_a_run),
        cmocka_unit_test(test_every_option_is_accepted_or_refused_by_name),
        cmocka_unit_test(test_values_from_the_environment),
        cmocka_unit_test(test_blanks_around_values),
        cmocka_unit_test(test_addresses_of_ipv6),
        cmocka_unit_test(test_flags_from_the_environment),
        cmocka_unit_test(test_words_as_argparse_reads_them),
        cmocka_unit_test(test_what_the_operator_writes),
        cmocka_unit_test(test_how_nodes_meet),
        cmocka_unit_test(test_how_many_ranks),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_leniencies),
        cmocka_unit_test(test_a_watchdog_that_is_not_there),
        cmocka_unit_test(test_a_gpu_for_each_virtual_rank),
        cmocka_unit_test(test_program_kinds),
        cmocka_unit_test(test_maps_of_streams),
        cmocka_unit_test(test_standalone_and_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
