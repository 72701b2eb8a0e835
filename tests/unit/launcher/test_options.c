/* test_options.c - the command line: every spelling, every default, every refusal. */
#include "common/contract.h"
#include "launcher/options.h"

#include "common/text.h"
#include "examples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 16, SHOWN_BYTES = 1000 };

/* What options are not as those of `torchrun p`, and then the program's words with | between them. */
static void show(const struct options *o, char out[static SHOWN_BYTES])
{
    static const char *const kinds[] = {"", "python ", "module ", "run-path "};
    const struct meet_config *m = &o->meeting;
    char *const s = out;

    out[0] = '\0';
#define SHOW(condition, ...) (condition) ? text_add(s, SHOWN_BYTES, __VA_ARGS__) : (void)0
    SHOW(o->help, "help ");
    SHOW(o->nnodes > 1 && o->nnodes_min == o->nnodes, "nnodes=%d ", o->nnodes);
    SHOW(o->nnodes_min != o->nnodes, "nnodes=%d:%d ", o->nnodes_min, o->nnodes);
    SHOW(!o->help && o->nproc != 1, "nproc=%d ", o->nproc);
    SHOW(o->node_rank, "rank=%d ", o->node_rank);
    SHOW(!o->help && !o->is_static, "c10d ");
    SHOW(o->run_id, "id=%s ", o->run_id);
    SHOW(o->nnodes > 1, "at=%s:%d ", m->host, m->port);
    SHOW(m->node.key.has, "key ");
    SHOW(o->nnodes > 1 && m->hosts != MEET_HOSTS_AUTO, "host=%d ", m->hosts == MEET_HOSTS);
    SHOW(o->nnodes > 1 && m->node.wanted >= 0, "order=%d ", (int)m->node.wanted);
    SHOW(m->node.addr, "local=%s ", m->node.addr);
    SHOW(!o->help && m->node.join_ms != 600000, "join=%d ", (int)m->node.join_ms);
    SHOW(!o->help && m->quorum.last_call_ms != 30000, "last=%d ", (int)m->quorum.last_call_ms);
    SHOW(!o->help && (m->node.keep_alive_ms != 5000 || m->node.keep_alive_attempts != 3), "beats=%dx%d ",
         (int)m->node.keep_alive_ms, (int)m->node.keep_alive_attempts);
    SHOW(!o->help && (!o->master_addr || strcmp(o->master_addr, "127.0.0.1") != 0 || o->master_port),
         "master=%s:%d ", o->master_addr ? o->master_addr : "?", o->master_port);
    SHOW(strcmp(o->role, "default") != 0, "role=%s ", o->role);
    SHOW(o->max_restarts, "restarts=%d ", o->max_restarts);
    SHOW(o->shutdown_timeout_ms != 20000, "stop=%d ", (int)o->shutdown_timeout_ms);
    SHOW(o->progress_timeout_ms, "progress=%d ", (int)o->progress_timeout_ms);
    for (int i = 1; i < 32 && !o->help; i++)
        SHOW(sigismember(&o->signals, i) != (i == SIGTERM || i == SIGINT || i == SIGHUP || i == SIGQUIT),
             "%csignal=%d ", sigismember(&o->signals, i) ? '+' : '-', i);
    SHOW(o->local_rank_argument, "--local-rank ");
    SHOW(o->virtual_local_rank, "virtual ");
    SHOW(o->log_dir, "log=%s ", o->log_dir);
    for (int i = 0; i < o->nproc && !o->help; i++) {
        SHOW(o->redirects[i], "redirect%d=%d ", i, o->redirects[i]);
        SHOW(o->tee[i], "tee%d=%d ", i, o->tee[i]);
        SHOW(!o->shown[i], "hide%d ", i);
    }
    SHOW(o->prefix_template, "prefix='%s' ", o->prefix_template);
    for (int i = 0; i < 2; i++)
        for (const char *const *f = o->filters[i]; f && *f; f++)
            SHOW(true, "filter%d='%s' ", i, *f);
    SHOW(true, "%s", kinds[o->program_kind]);
    for (char *const *p = o->program; p && *p; p++)
        SHOW(true, "%s%s", p == o->program ? "" : "|", *p);
}

/* A row: the words of the command line, with | between them; what show makes of them, NULL: they are refused; a text of the
 * refusal, or else of the only warning; variables, with | between them (GPUS=n: how many there are). */
enum { WORDS, WANT, SAYS, ENV, COLUMNS };

static char *fake_env[WORDS_MAX];
static char uid[] = "uid"; /* the id where several nodes get none */

static char *fake_get(const char *name)
{
    for (char **e = fake_env; *e; e++)
        if (strncmp(*e, name, strlen(name)) == 0 && (*e)[strlen(name)] == '=')
            return *e + strlen(name) + 1;
    if (strcmp(name, CONTRACT_ENV_JOB_UID) == 0)
        return uid;
    return NULL;
}

/* Returns how many. */
static int split(const char *text, char **words, struct arena *a)
{
    struct sv rest = sv_from(text ? text : ""), word;
    int n = 0;

    while (text && sv_next(&rest, '|', &word)) {
        assert_true(n < WORDS_MAX - 1);
        words[n++] = arena_strndup(a, word.p, word.len);
    }
    words[n] = NULL;
    return n;
}

static void expect(const char *const r[static COLUMNS])
{
    cleanup_arena struct arena a = {0};
    char *words[WORDS_MAX], shown[SHOWN_BYTES] = "";
    struct err err = {0};
    struct options o = {0};

    split(r[ENV], fake_env, &a);
    const char *gpus = fake_get("GPUS");
    const struct options_host host = {.get = fake_get, .cpus = 6, .gpus = gpus ? atoi(gpus) : 0};
    const int n = split(r[WORDS], words, &a), rc = options_parse(n, words, &host, &a, &o, &err);
    if (rc == 0)
        show(&o, shown);
    const char *said = rc < 0 ? err.msg : o.warnings ? o.warning[0] : "";
    if ((rc == 0) != (r[WANT] != NULL) || (rc < 0 && err.kind != ERR_INVALID) ||
        strcmp(shown, r[WANT] ? r[WANT] : "") != 0 || o.warnings != (rc == 0 && r[SAYS]) ||
        (r[SAYS] && !strstr(said, r[SAYS])))
        fail_msg("%s: \"%s\", %d warnings, \"%s\"", r[WORDS], shown, o.warnings, said);
    fake_env[0] = NULL; /* the arena's */
}

static void expect_rows(const char *const (*rows)[COLUMNS], size_t n)
{
    for (size_t i = 0; i < n; i++)
        expect(rows[i]);
}

static void test_every_option_is_accepted_or_refused_by_name(void **state)
{
    (void)state;
    for (int i = 0; i < N_OPTIONS; i++) {
        cleanup_arena struct arena a = {0};
        const struct options_host host = {.get = fake_get, .cpus = 6, .gpus = 1};
        char word[80], torchrun[] = "torchrun", p[] = "p", *words[] = {torchrun, word, p, NULL};
        struct options o;
        struct err err = {0};
        snprintf(word, sizeof(word), "--%s%s", option_rows[i].name, option_rows[i].value ? "=\x01" : "");
        if (options_parse(3, words, &host, &a, &o, &err) < 0) {
            assert_int_equal(err.kind, ERR_INVALID);
            if (!strstr(err.msg, option_rows[i].name))
                fail_msg("%s: %s", word, err.msg);
        }
        assert_true(strlen(option_rows[i].help) > 0);
    }
}

#define C10D "torchrun|--nnodes=2|--rdzv-backend=c10d|--rdzv-endpoint"
#define STATIC "torchrun|--nnodes=2|--node-rank=1|"

/* Several nodes have an id of their own, unless they are on one host or have a key. */
static void test_the_id_of_a_run(void **state)
{
#define OUTSIDE "PTJ_JOB_UID="
#define KEY "TORCHKEEPER_JOB_KEY=000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f"
    static const char *const rows[][COLUMNS] = {
        {"torchrun|--nnodes=2|--master-addr=h|p", NULL, "--rdzv-id: ", OUTSIDE},
        {"torchrun|--nnodes=2|--rdzv-id=none|--master-addr=10.0.0.1|p", NULL, "--rdzv-id: ", OUTSIDE},
        {"torchrun|--nnodes=2|--rdzv-id=|--master-addr=10.0.0.1|p", NULL, "--rdzv-id: ", OUTSIDE},
        {"torchrun|--nnodes=1:2|--rdzv-backend=c10d|--rdzv-endpoint=h|p", NULL, "--rdzv-id: ", OUTSIDE},
        {"torchrun|--nnodes=2|--rdzv-id=x|--master-addr=h|p",
         "nnodes=2 id=x at=h:29400 host=1 order=0 master=h:29500 p", NULL, OUTSIDE},
        {"torchrun|--nnodes=2|p",
         "nnodes=2 id=none at=127.0.0.1:29400 host=1 order=0 master=127.0.0.1:29500 p", NULL, OUTSIDE},
        {C10D "=localhost:1|p", "nnodes=2 c10d id=none at=localhost:1 master=?:0 p", NULL, OUTSIDE},
        {C10D "=LOCALHOST:1|p", "nnodes=2 c10d id=none at=LOCALHOST:1 master=?:0 p", NULL, OUTSIDE},
        {C10D "=ip6-localhost|p", "nnodes=2 c10d id=none at=ip6-localhost:29400 master=?:0 p", NULL, OUTSIDE},
        {C10D "=localhost.localdomain|p", "nnodes=2 c10d id=none at=localhost.localdomain:29400 master=?:0 p",
         NULL, OUTSIDE},
        {C10D "=[::1]:1|p", "nnodes=2 c10d id=none at=::1:1 master=?:0 p", NULL, OUTSIDE},
        {C10D "=[::ffff:127.0.0.1]|p", "nnodes=2 c10d id=none at=::ffff:127.0.0.1:29400 master=?:0 p", NULL,
         OUTSIDE},
        {C10D "=localhost.example.org|p", NULL, "--rdzv-id: ", OUTSIDE},
        {C10D "=[::ffff:10.0.0.1]|p", NULL, "--rdzv-id: ", OUTSIDE},
        {"torchrun|--nnodes=1|--rdzv-backend=c10d|--rdzv-endpoint=h|p", "c10d id=none p", NULL, OUTSIDE},
        {C10D "=h|p", "nnodes=2 c10d id=none at=h:29400 key master=?:0 p", NULL, OUTSIDE "|" KEY},
        {C10D "=h|p", "nnodes=2 c10d id=uid at=h:29400 master=?:0 p"},
        {C10D "=h|--rdzv-id=x|p", "nnodes=2 c10d id=x at=h:29400 master=?:0 p"},
        {"torchrun|p", NULL, "TORCHKEEPER_JOB_KEY: the key of the job: expected 64 hexadecimal digits",
         "TORCHKEEPER_JOB_KEY=5ecre7"},
    };

    (void)state;
    expect_rows(rows, ARRAY_LEN(rows));
}

static void test_words(void **state)
{
    static const char *const rows[][COLUMNS] = {
        /* What follows the program is the program's. Without an id there is a fresh one, and without a port a free one. */
        {"torchrun|prog|--nnodes=7|-x", "prog|--nnodes=7|-x"},
        {"torchrun|--nproc_per_node=3|p", "nproc=3 p"},
        {"torchrun|--nproc-per-node=3|p", "nproc=3 p"},
        {"torchrun|--nproc_per_node|3|p", "nproc=3 p"},
        {"torchrun|--nproc-per-node|3|p", "nproc=3 p"},
        {"torchrun|--nproc-per_node|3|--|p", "nproc=3 p"},
        {"torchrun|--standalone|p", "c10d p"},
        {"torchrun|--help|--bogus", "help "},
        {"torchrun|-h", "help "},
        /* What argparse takes for an option's value, and for which letters. */
        {"torchrun|--role|-x|p", NULL, "expected a value"},
        {"torchrun|--role|--nnodes=1|p", NULL, "expected a value"},
        {"torchrun|--role|--|p", NULL, "expected a value"},
        {"torchrun|-t|-m|p", NULL, "expected a value"},
        {"torchrun|--role=-x|p", "role=-x p"},
        {"torchrun|--role|-|p", "role=- p"},
        {"torchrun|--role|-1|p", "role=-1 p"},
        {"torchrun|--role|-.5|p", "role=-.5 p"},
        {"torchrun|--role|-a b|p", "role=-a b p"},
        {"torchrun|-mt3|p", "tee0=3 module p"},
        {"torchrun|-mr|3|p", "redirect0=3 module p"},
        {"torchrun|-mx|p", NULL, "-mx: unknown option"},
        {"torchrun|-m=1|p", NULL, "takes no value"},
        {"torchrun|p|--|-x", "p|-x"},
        {"torchrun|p|--|--|-x", "p|--|-x"},
        {"torchrun|p|x|--|-x", "p|x|--|-x"},
        {"torchrun|--|p|--|-x", "p|--|-x"},
        {"torchrun|p|--", "p"},
        /* Who runs the program. */
        {"torchrun|train.py", "python train.py"},
        {"torchrun|--no_python|train.py", "train.py"},
        {"torchrun|-m|pkg.train", "module pkg.train"},
        {"torchrun|--run-path|train.py", "run-path train.py"},
        {"torchrun|--run-path|--no-python|-m|train.py", "run-path train.py"},
        {"launch|--no-python|--use-env|p", "p"},
        {"/usr/bin/launch|train.py", "--local-rank python train.py"},
        {"torch.distributed.launch|--use-env|train.py", "python train.py"},
        {"torchrun|--nproc-per-node=3|--local-ranks-filter=|--log-dir=|p", "nproc=3 p"},
        {"torchrun|--nproc-per-node=3|-r|3|-t0:1,2:3|--local-ranks-filter=0,2,15|p",
         "nproc=3 redirect0=3 tee0=1 redirect1=3 hide1 redirect2=3 tee2=3 p"},
    };

    (void)state;
    expect_rows(rows, ARRAY_LEN(rows));
}

static void test_the_environment(void **state)
{
    static const char *const rows[][COLUMNS] = {
        {"torchrun|--nproc-per-node=2|train.py",
         "nnodes=2 nproc=2 rank=1 id=uid at=pod-0:1134 host=0 order=1 master=pod-0:1234 train.py", NULL,
         "PET_NPROC_PER_NODE=5|PET_NNODES=2|PET_NODE_RANK=1|PET_MASTER_ADDR=pod-0|PET_MASTER_PORT=1234|"
         "PET_STANDALONE=0|PET_NO_PYTHON=1"},
        {"torchrun|p", NULL, "PET_MAX_RESTARTS: --max-restarts: expected an integer 0..1048576, got \"many\"",
         "PET_MAX_RESTARTS=many"},
        {"torchrun|p", "stop=7000 p", NULL, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=7"},
        {"torchrun|--shutdown-timeout=3|p", "stop=3000 p", NULL, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=7"},
        {"torchrun|p", NULL, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=soon", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=soon"},
        {"torchrun|p", "progress=300000 p", NULL, "TORCHKEEPER_PROGRESS_TIMEOUT=300"},
        {"torchrun|p", "p", NULL, "TORCHKEEPER_PROGRESS_TIMEOUT="},
        {"torchrun|p", NULL, "TORCHKEEPER_PROGRESS_TIMEOUT=0: ", "TORCHKEEPER_PROGRESS_TIMEOUT=0"},
        {"torchrun|p", NULL, "TORCHKEEPER_PROGRESS_TIMEOUT=-1: ", "TORCHKEEPER_PROGRESS_TIMEOUT=-1"},
        {"torchrun|p", NULL, "TORCHKEEPER_PROGRESS_TIMEOUT=1.5: ", "TORCHKEEPER_PROGRESS_TIMEOUT=1.5"},
        {"torchrun|p", NULL, "PROGRESS_TIMEOUT=604801: ", "TORCHKEEPER_PROGRESS_TIMEOUT=604801"},
        {"torchrun|p", NULL, "PROGRESS_TIMEOUT=soon: expected seconds, 1..604800",
         "TORCHKEEPER_PROGRESS_TIMEOUT=soon"},
        {C10D "=h|p", "nnodes=2 c10d id=uid at=h:29400 order=1999 master=?:0 p", NULL, "PTJ_NODE_ORDER=1999"},
        {C10D "=h|p", "nnodes=2 c10d id=uid at=h:29400 master=?:0 p", NULL, "PTJ_NODE_ORDER="},
        {C10D "=h|p", "nnodes=2 c10d id=uid at=h:29400 master=?:0 p", "=-1 has", "PTJ_NODE_ORDER=-1"},
        {C10D "=h|p", "nnodes=2 c10d id=uid at=h:29400 master=?:0 p", "=2000 has", "PTJ_NODE_ORDER=2000"},
        {C10D "=h|p", "nnodes=2 c10d id=uid at=h:29400 master=?:0 p", "=1x has", "PTJ_NODE_ORDER=1x"},
        {C10D "=h|p", "nnodes=2 c10d id=uid at=h:29400 master=?:0 p", "= 1 has", "PTJ_NODE_ORDER= 1"},
        {STATIC "--rdzv-endpoint=h:1|p", "nnodes=2 rank=1 id=uid at=h:101 host=0 order=1 master=h:1 p", NULL,
         "PTJ_NODE_ORDER=1x"},
        {"torchrun|p", "p", NULL, "TORCHELASTIC_ENABLE_FILE_TIMER=0"},
        {"torchrun|p", "p", "TORCHELASTIC_ENABLE_FILE_TIMER=1 has no effect",
         "TORCHELASTIC_ENABLE_FILE_TIMER=1"},
        /* A flag's is a number; of some options PyTorch's reads none, so it is no reason to refuse anything. */
        {"torchrun|train.py", "module train.py", NULL, "PET_MODULE=1"},
        {"torchrun|train.py", "python train.py", NULL, "PET_MODULE=0"},
        {"torchrun|train.py", "python train.py", NULL, "PET_MODULE=00"},
        {"torchrun|train.py", "module train.py", NULL, "PET_MODULE=2"},
        {"torchrun|train.py", "python train.py", NULL, "PET_MODULE="},
        {"torchrun|train.py", NULL, "(from PET_MODULE): expected 0 or 1", "PET_MODULE=true"},
        {"torchrun|train.py", NULL, "(from PET_STANDALONE): expected 0 or 1", "PET_STANDALONE=yes"},
        {"torchrun|train.py", "python train.py", NULL, "PET_NUMA_BINDING=node"},
        {"torchrun|train.py", "python train.py", NULL, "PET_LOGS_SPECS=x"},
        {"torchrun|train.py", "run-path train.py", NULL, "PET_RUN_PATH=1"},
        {"launch|train.py", "--local-rank python train.py", NULL, "PET_USE_ENV=1"},
        /* Blanks, as a ConfigMap, a file or a shell leaves them; not around texts that go before lines or are searched in them. */
        {"torchrun|train.py",
         "nnodes=2 nproc=3 c10d id=job at=job-0:29412 host=1 join=7000 master=?:0 restarts=4 stop=9000 "
         "progress=11000 train.py",
         NULL,
         "PET_NNODES=2 |PET_NPROC_PER_NODE= "
         "3\n|PET_NODE_RANK=\t1|PET_MAX_RESTARTS=4\r\n|PET_RDZV_BACKEND=c10d\n|"
         "PET_RDZV_ENDPOINT= job-0:29412\n|PET_RDZV_ID= job \n|PET_RDZV_CONF= join_timeout = 7 , is_host = "
         "1\n|"
         "PET_NO_PYTHON=1\n|PET_ROLE= \n|TORCH_ELASTIC_SHUTDOWN_TIMEOUT= "
         "9\n|TORCHKEEPER_PROGRESS_TIMEOUT=11\n"},
        {"torchrun|--nnodes| 2 : 2 |--node-rank= 1|--local-addr=h\n|--tee= 0:3 , 1:1\n|--nproc-per-node=2 |"
         "--signals-to-handle= SIGTERM , SIGUSR1|--duplicate-stdout-filters= x|p",
         "nnodes=2 nproc=2 rank=1 id=uid at=10.0.5.4:29400 host=0 order=1 local=h master=10.0.5.4:29500 "
         "-signal=1 -signal=2 -signal=3 +signal=10 tee0=3 tee1=1 prefix=' [${rank}] ' filter0=' x' p",
         NULL, "PET_MASTER_ADDR= 10.0.5.4|PET_LOG_LINE_PREFIX_TEMPLATE= [${rank}] "},
        {"torchrun|p", NULL, "--nnodes=1 2 (from PET_NNODES)", "PET_NNODES=1 2"},
    };

    (void)state;
    expect_rows(rows, ARRAY_LEN(rows));
}

static void test_how_nodes_meet(void **state)
{
    static const char *const rows[][COLUMNS] = {
        /* As the operator writes them. */
        {"torchrun|--nnodes=1:1|--nproc_per_node=4|--max_restarts=3|--rdzv_backend=c10d|"
         "--rdzv_endpoint=mnist-node-0.mnist-rdzv:29400|--rdzv_id=0b6f-2|"
         "--rdzv_conf=is_host=true,read_timeout=600,join_timeout=3600|trainer|mnist-cnn",
         "nproc=4 c10d id=0b6f-2 join=3600000 restarts=3 trainer|mnist-cnn"},
        {"torchrun|--nnodes=3|--nproc_per_node=2|--rdzv_backend|static|--node_rank=2|--master_addr=job-0."
         "rdzv|"
         "--master_port=29500|p",
         "nnodes=3 nproc=2 rank=2 id=uid at=job-0.rdzv:29400 host=0 order=2 master=job-0.rdzv:29500 p"},
        {"torchrun|--nnodes=2:4|--nproc_per_node=2|--max_restarts=3|--rdzv_backend=c10d|--rdzv_id=0b6f-2|"
         "--rdzv_endpoint=mnist-node-0.mnist-rdzv:29400|"
         "--rdzv_conf=is_host=true,read_timeout=600,join_timeout=3600,join_timeout=10|p",
         "nnodes=2:4 nproc=2 c10d id=0b6f-2 at=mnist-node-0.mnist-rdzv:29400 host=1 join=10000 master=?:0 "
         "restarts=3 p"},
        {C10D "=h|--rdzv-conf=last_call_timeout=0.5,keep_alive_interval=0.25,keep_alive_max_attempt=4|p",
         "nnodes=2 c10d id=uid at=h:29400 last=500 beats=250x4 master=?:0 p"},
        /* Static: never at MASTER_PORT, wherever that is; node 0 hosts. */
        {"torchrun|--nnodes=2|--rdzv-conf=timeout=7|p",
         "nnodes=2 id=uid at=127.0.0.1:29400 host=1 order=0 join=7000 master=127.0.0.1:29500 p"},
        {STATIC "--rdzv-endpoint=h:29400|--master-port=29500|p",
         "nnodes=2 rank=1 id=uid at=h:29400 host=0 order=1 master=h:29500 p"},
        {STATIC "--rdzv-endpoint=h:29500|p",
         "nnodes=2 rank=1 id=uid at=h:29400 host=0 order=1 master=h:29500 p"},
        {STATIC "--rdzv-endpoint=h|--master-port=50|p",
         "nnodes=2 rank=1 id=uid at=h:150 host=0 order=1 master=h:50 p"},
        {STATIC "--rdzv-endpoint=h:1000|--master-port=1000|p",
         "nnodes=2 rank=1 id=uid at=h:900 host=0 order=1 master=h:1000 p"},
        {STATIC "--master-port=1234|p",
         "nnodes=2 rank=1 id=uid at=127.0.0.1:1134 host=0 order=1 master=127.0.0.1:1234 p"},
        {STATIC "--rdzv-endpoint=[fd00::1]:77|p",
         "nnodes=2 rank=1 id=uid at=fd00::1:177 host=0 order=1 master=fd00::1:77 p"},
        /* IPv6 with brackets where a port may follow, with or without where none does. */
        {C10D "|[::1]|p", "nnodes=2 c10d id=uid at=::1:29400 master=?:0 p"},
        {C10D "|[::1]:1234|p", "nnodes=2 c10d id=uid at=::1:1234 master=?:0 p"},
        {C10D "|[fd00::a:1]:0|p", "nnodes=2 c10d id=uid at=fd00::a:1:29400 master=?:0 p"},
        {C10D "|[fe80::1%eth0]:7|p", "nnodes=2 c10d id=uid at=fe80::1%eth0:7 master=?:0 p"},
        {C10D "|job-0.job|p", "nnodes=2 c10d id=uid at=job-0.job:29400 master=?:0 p"},
        {C10D "|10.0.0.1:7|p", "nnodes=2 c10d id=uid at=10.0.0.1:7 master=?:0 p"},
    };
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
                                      "[10.0.0.1]:1",
                                      "host:99999999"};
    static const char *const addresses[][2] = {
        {"[::1]", "::1"}, {"fd00::1", "fd00::1"}, {"fe80::1%eth0", "fe80::1%eth0"}, {"job-0", "job-0"}};
    static const char *const no_address[] = {"job-0:29500", "[::1]:29500", "[job-0]",
                                             "fd00::1::2",  "[::1",        "10.0.0.1:1"};
    char words[200], want[200];

    (void)state;
    expect_rows(rows, ARRAY_LEN(rows));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        snprintf(words, sizeof(words), "torchrun|--nnodes=2|--rdzv-endpoint|%s|p", bad[i]);
        expect(
            (const char *const[COLUMNS]){words, NULL,
                                         ": expected HOST or HOST:PORT, with an IPv6 address in brackets, as "
                                         "[fd00::1]:29400"});
    }
    for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
        const char *given = addresses[i][0], *plain = addresses[i][1];
        snprintf(words, sizeof(words), "torchrun|--nnodes=2|--master-addr|%s|--local-addr|%s|p", given,
                 given);
        snprintf(want, sizeof(want), "nnodes=2 id=uid at=%s:29400 host=1 order=0 local=%s master=%s:29500 p",
                 plain, plain, plain);
        expect((const char *const[COLUMNS]){words, want});
    }
    for (size_t i = 0; i < 2 * ARRAY_LEN(no_address); i++) {
        snprintf(want, sizeof(want), "--%s=%s: ", i % 2 ? "master-addr" : "local-addr", no_address[i / 2]);
        snprintf(words, sizeof(words), "torchrun|--nnodes=2|%.*s|p", (int)strlen(want) - 2, want);
        expect((const char *const[COLUMNS]){words, NULL, want});
    }
}

static void test_how_many_ranks(void **state)
{
    static const char *const rows[][COLUMNS] = {
        {"torchrun|--nproc-per-node|auto|p", "nproc=6 p"},
        {"torchrun|--nproc-per-node|auto|p", "nproc=8 p", NULL, "GPUS=8"},
        {"torchrun|--nproc-per-node|cpu|p", "nproc=6 p", NULL, "GPUS=8"},
        {"torchrun|--nproc-per-node|gpu|p", "nproc=8 p", NULL, "GPUS=8"},
        {"torchrun|--nproc-per-node|gpu|p", NULL,
         "GPUs on this node, and 0 are visible (/dev/nvidia0, CUDA_VISIBLE_DEVICES): give the container "
         "some"},
        {"torchrun|--nproc-per-node=GPU|p", NULL,
         "--nproc-per-node=GPU: expected a number 1..1024, auto, cpu or gpu"},
        {"torchrun|--nproc-per-node|0|p", NULL, "--nproc-per-node=0: ", "GPUS=8"},
        {"torchrun|--nproc-per-node|-1|p", NULL, "--nproc-per-node=-1: ", "GPUS=8"},
        {"torchrun|--nproc-per-node|1024|p", "nproc=1024 p"},
        {"torchrun|--nproc-per-node|1025|p", NULL, "--nproc-per-node=1025: "},
        {"torchrun|--nproc-per-node|xpu|p", NULL, "--nproc-per-node=xpu: ", "GPUS=8"},
        {"torchrun|--nproc-per-node|4x|p", NULL, "--nproc-per-node=4x: "},
        {"torchrun|--nproc-per-node||p", NULL, "--nproc-per-node=: "},
        /* A GPU for each rank that sees one only. */
        {"torchrun|--virtual-local-rank|--nproc=2|p", "nproc=2 virtual p", NULL, "GPUS=2"},
        {"torchrun|--virtual-local-rank|--nproc=3|p", NULL, "--virtual-local-rank: ", "GPUS=2"},
        {"torchrun|--virtual-local-rank|--nproc=3|p", "nproc=3 virtual p"},
        {"torchrun|--virtual-local-rank|--nproc=2|p", "nproc=2 virtual p", NULL,
         "GPUS=2|CUDA_VISIBLE_DEVICES=3,1"},
        {"torchrun|--virtual-local-rank|--nproc=3|p", NULL,
         "--virtual-local-rank: ", "GPUS=2|CUDA_VISIBLE_DEVICES=3,1"},
        {"torchrun|--virtual-local-rank|--nproc=2|p", NULL,
         "--virtual-local-rank: ", "CUDA_VISIBLE_DEVICES="},
        {"torchrun|--virtual-local-rank|p", "virtual p", NULL, "CUDA_VISIBLE_DEVICES="},
    };

    (void)state;
    expect_rows(rows, ARRAY_LEN(rows));
}

static void test_refusals(void **state)
{
    static const char *const cases[][2] = {
        {"torchrun", "no program"},
        {"torchrun|--nproc-per-node", "expected a value"},
        {"torchrun|--bogus=1|p", "--bogus: unknown option (torchrun --help)"},
        {"torchrun|-x|p", "-x: unknown option (torchrun --help)"},
        {"torchrun|--max_restartz=4|p",
         "--max_restartz: unknown option; did you mean --max-restarts? (torchrun --help)"},
        {"torchrun|--no=4|p", "--no: expected one of --node-rank, --no-python"},
        {"torchrun|--master|h|p", "--master: expected one of --master-addr, --master-port"},
        {"torchrun|--=4|p", "unknown option"},
        {"torchrun|--nproc-per-nodes|4|p", "; did you mean --nproc-per-node? (torchrun --help)"},
        {"torchrun|--rdzv-backend=c10|p", "static or c10d, got \"c10\"; did you mean c10d?"},
        {"torchrun|--standalone=1|p", "takes no value"},
        {"torchrun|--nnodes=1:4|p", "elastic"},
        {"torchrun|--standalone|--nnodes=2:4|p", "--standalone"},
        {"torchrun|--standalone|--nnodes=2|p", "--standalone"},
        {"torchrun|--nnodes=4:1|p", "MAX not below MIN"},
        {"torchrun|--nnodes=0|p", "--nnodes=0"},
        {"torchrun|--nnodes=2|--rdzv-backend=c10d|p", "--rdzv-endpoint"},
        {"torchrun|--nnodes=2001|p", "at most 2000"},
        {"torchrun|--rdzv-conf=is_host=maybe|p", "is_host=true"},
        {"torchrun|--rdzv-conf=join_timeout=0|p", "above 0"},
        {"torchrun|--rdzv-conf=timeout=0|--master-port=1|p", "above 0"},
        {"torchrun|--rdzv-conf=join_timeout=soon|p", "above 0"},
        {"torchrun|--rdzv-conf=keep_alive_max_attempt=0|p", "1..1000"},
        {"torchrun|--rdzv-backend=etcd-v2|p", "without an etcd server"},
        {"torchrun|--rdzv-backend=zeus|p", "static or c10d"},
        {"torchrun|--node-rank=1|--master-port=1|p", "--node-rank=1"},
        {"torchrun|--nnodes=2|--node-rank=2|p", "expected 0..1"},
        {"torchrun|--rdzv-conf=nonsense|p", "key=value"},
        {"torchrun|--master-port=0|p", "1..65535"},
        {"torchrun|--max-restarts=-1|p", "--max-restarts: expected an integer 0..1048576, got \"-1\""},
        {"torchrun|--shutdown-timeout=nan|p", "--shutdown-timeout: expected a number 0..86400, got \"nan\""},
        {"torchrun|--start-method=magic|p", "forkserver"},
        {"torchrun|--numa-binding=node|p", "--numa-binding=node: expected the option to be left out: this "
                                           "launcher does not bind ranks to CPUs"},
        {"torchrun|--print-completion=fisch", "bash, zsh, fish or tcsh, got \"fisch\"; did you mean fish?"},
        {"torchrun|--logs-specs=mine|p", "Python plugins"},
        {"torchrun|--event-log-handler=console|p", "Python's log handlers"},
        {"torchrun|-m|--no-python|p", "at most one"},
        {"launch|--no-python|p", "--no-python: expected --use-env too"},
        {"launch|--no-such|p", "--no-such: unknown option (launch --help)"},
        {"launch", "expected launch [OPTIONS] PROGRAM"},
        {"torchrun|--no-such|p", "--no-such: unknown option (torchrun --help)"},
        {"torchrun|-r|4|p", "redirects"},
        {"torchrun|-t|1:4|p", "RANK:0..3"},
        {"torchrun|--local-ranks-filter=a|p", "local-ranks-filter"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect((const char *const[COLUMNS]){cases[i][0], NULL, cases[i][1]});
}

/* What PyTorch's takes and this launcher has no use for, or for fewer ranks. */
static void test_leniencies(void **state)
{
    static const char *const rows[][COLUMNS] = {
        {"torchrun|--rdzv-conf=color=red,join_timeout=9|p", "join=9000 p", "color is not a setting"},
        {"torchrun|--rdzv-conf=\"timeout=9\"|p", "p", "\"timeout is not a setting"},
        {"torchrun|--rdzv-conf=timeout=\"9\"|p", "p", "timeout has no effect: expected times in seconds"},
        {"torchrun|--rdzv-conf=timeout=soon|--rdzv-backend=c10d|p", "c10d id=none p",
         "timeout has no effect"},
        {"torchrun|--rdzv-conf=join_timeout=9\"|--master-port=1|p", "id=none master=127.0.0.1:1 p",
         "join_timeout has no effect"},
        {"torchrun|--rdzv-conf=is_host=maybe|--master-port=1|p", "id=none master=127.0.0.1:1 p",
         "is_host has no effect"},
        {"torchrun|--node_rank=1|p", "p", "--node-rank=1 has no effect"},
        {"torchrun|--standalone|--nnodes=1:4|p", "c10d p"},
        {"torchrun|--standalone|--rdzv-backend=etcd|p", "c10d p"},
        {"torchrun|--rdzv-conf=  |p", "p"},
        {"torchrun|--signals-to-handle=SIGTERM,SIGFOO|p", "-signal=1 -signal=2 -signal=3 p",
         "SIGFOO is not handled"},
        {"torchrun|-r|1:1|p", "p"},
        {"torchrun|--log-dir|/dev/null|p", "p"},
        {"torchrun|--nnode=1|--redirect=3|p", "redirect0=3 p"},
        {"torchrun|--nproc|1|p", "p"},
        {"torchrun|--no-py|p", "p"},
    };

    (void)state;
    expect_rows(rows, ARRAY_LEN(rows));
}

static void take(const struct option_example *list, const char *program)
{
    expect_examples(list);
    for (; list->command; list++) {
        cleanup_arena struct arena a = {0};
        const struct options_host host = {.get = fake_get, .cpus = 6, .gpus = 8};
        const struct example_words *w = example_split(list->command, program);
        struct options o;
        struct err err;
        if (options_parse(w->argc, w->argv, &host, &a, &o, &err) < 0)
            fail_msg("%s: %s", list->command, err.msg);
        if (o.warnings)
            fail_msg("%s: %s", list->command, o.warning[0]);
    }
}

static void test_examples_are_taken(void **state)
{
    (void)state;
    take(torchrun_examples, "torchrun");
    take(launch_examples, "launch");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_id_of_a_run),
        cmocka_unit_test(test_every_option_is_accepted_or_refused_by_name),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_the_environment),
        cmocka_unit_test(test_how_nodes_meet),
        cmocka_unit_test(test_how_many_ranks),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_leniencies),
        cmocka_unit_test(test_examples_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
