/* test_meet.c - how ranks of several pods meet: late, many, twice, with the wrong words, among strangers; and a random
 * death at a random step. */
#include "../flood.h"
#include "../patience.h"
#include "../ports.h"
#include "collectives/watch_wire.h"
#include "host/memory_file.h"
#include "host/rank_contract.h"
#include "one_rank.h"
#include "ranks.h"
#include "seed.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

static const struct ranks_layout two_by_two = {.world = 4, .per_pod = 2},
                                 with_key = {.world = 4, .per_pod = 2, .key = true},
                                 two_with_key = {.world = 2, .per_pod = 1, .key = true};

static int sums_body(struct collectives *c, void *arg)
{
    (void)arg;
    return one_rank_sums_up(c);
}

static void test_64_ranks_in_8_pods(void **state)
{
    (void)state;
    ranks_run_pods(&(struct ranks_layout){.world = 64, .per_pod = 8}, sums_body, NULL);
}

/* More pods than leaders are joined each to each. */
static void test_24_pods(void **state)
{
    (void)state;
    ranks_run_pods(&(struct ranks_layout){.world = 24, .per_pod = 1}, sums_body, NULL);
}

static void test_another_run_is_refused(void **state)
{
    char run_id[64], said[300];
    const int port = ports_take();
    int fds[2];
    pid_t pids[4];

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    for (int r = 0; r < 3; r++)
        pids[r] = one_rank_start(ranks_pods_config(r, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, -1);
    struct collectives_config other = ranks_pods_config(3, &two_by_two, port, run_id);
    other.run_id = "another";
    assert_int_equal(one_rank_ended(one_rank_start(other, RANKS_TIMEOUT_MS, fds[1])), 1);
    one_rank_said(fds[0], said, sizeof(said));
    assert_non_null(strstr(said, "run id"));
    /* The others have noticed nothing. */
    pids[3] = one_rank_start(ranks_pods_config(3, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, -1);
    for (int r = 0; r < 4; r++)
        assert_int_equal(one_rank_ended(pids[r]), 0);
    close(fds[0]);
    close(fds[1]);
}

/* A rank without the key gets an error. A rank with another key looks for a rank 0 that has the same one, and ignores what this one sends. */
static void test_the_key_of_the_job(void **state)
{
    char run_id[64], said[300], where[MEMORY_FILE_BYTES];
    const int port = ports_take();
    int fds[2];
    pid_t pids[4];
    struct collectives_config cfg[4];

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    for (int r = 0; r < 4; r++) {
        cfg[r] = ranks_pods_config(r, &with_key, port, run_id);
        if (r == 1) { /* it has the launcher's file */
            const int file = memory_file_make(CONTRACT_KEY_FILE_NAME, JOBKEY_BYTES, where);
            assert_int_equal(write(file, cfg[r].key.bytes, JOBKEY_BYTES), JOBKEY_BYTES);
            cfg[r].key = (struct jobkey){0};
            cfg[r].key_file = where;
        }
        if (r < 3)
            pids[r] = one_rank_start(cfg[r], RANKS_TIMEOUT_MS, -1);
    }
    struct collectives_config other = cfg[3];
    other.key.has = false;
    assert_int_equal(one_rank_ended(one_rank_start(other, RANKS_TIMEOUT_MS, fds[1])), 1);
    one_rank_said(fds[0], said, sizeof(said));
    assert_non_null(strstr(said, "rank 0 has the key of the job, and this process has none"));
    other = cfg[3];
    other.key.bytes[0] ^= 1;
    for (int64_t ms = 1000;; ms = patience_grow(ms)) {
        assert_int_equal(one_rank_ended(one_rank_start(other, ms, fds[1])), 138);
        one_rank_said(fds[0], said, sizeof(said));
        if (strstr(said, "does not have the key of this job"))
            break;
        if (!strstr(said, "deadline passed")) /* it may, before rank 0 has answered */
            fail_msg("%s", said);
    }
    pids[3] = one_rank_start(cfg[3], RANKS_TIMEOUT_MS, -1);
    for (int r = 0; r < 4; r++)
        assert_int_equal(one_rank_ended(pids[r]), 0);
    close(fds[0]);
    close(fds[1]);
}

/* Ranks that disagree about the world size, or two of the same number, get an error. */
static void test_wrong_numbers_are_refused(void **state)
{
    char run_id[64], said[300];
    const int port = ports_take();
    int fds[2];

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t zero = one_rank_start(ranks_pods_config(0, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, -1);
    struct collectives_config cfg = ranks_pods_config(2, &two_by_two, port, run_id);
    cfg.world = 6;
    assert_int_equal(one_rank_ended(one_rank_start(cfg, RANKS_TIMEOUT_MS, fds[1])), 1);
    one_rank_said(fds[0], said, sizeof(said));
    assert_non_null(strstr(said, "WORLD_SIZE=6 on rank 2, but 4 on rank 0"));
    pid_t one = one_rank_start(ranks_pods_config(2, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, fds[1]);
    pid_t two = one_rank_start(ranks_pods_config(2, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, fds[1]);
    one_rank_said(fds[0], said, sizeof(said));
    assert_non_null(strstr(said, "two processes are rank 2"));
    /* One of an earlier round may be about to end: whoever was second may try again. */
    int status;
    const pid_t refused = waitpid(-1, &status, 0);
    assert_true((refused == one || refused == two) && WIFEXITED(status) && WEXITSTATUS(status) == 138);
    kill(zero, SIGKILL);
    kill(refused == one ? two : one, SIGKILL);
    for (int i = 0; i < 2; i++)
        assert_true(waitpid(-1, NULL, 0) > 0);
    close(fds[0]);
    close(fds[1]);
}

/* On one host: the name of a rank is taken, by one of an earlier round perhaps. */
static void test_a_rank_that_is_there_twice_may_try_again(void **state)
{
    struct collectives_config cfg = {
        .rank = 0, .world = 2, .local_rank = 0, .local_world = 2, .run_id = "twice"};
    char said[300];
    int fds[2], status;

    (void)state;
    cfg.master_port = ports_take();
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    const pid_t pids[] = {one_rank_start(cfg, RANKS_TIMEOUT_MS, fds[1]),
                          one_rank_start(cfg, RANKS_TIMEOUT_MS, fds[1])};
    const pid_t refused = waitpid(-1, &status, 0);
    one_rank_said(fds[0], said, sizeof(said));
    assert_non_null(strstr(said, "another process is rank 0 of this run already"));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 138);
    cfg.rank = cfg.local_rank = 1;
    assert_int_equal(one_rank_ended(one_rank_start(cfg, RANKS_TIMEOUT_MS, -1)), 0);
    assert_int_equal(one_rank_ended(pids[refused == pids[0]]), 0);
    close(fds[0]);
    close(fds[1]);
}

/* False: another one had not come yet either. */
static bool missing_rank_is_named(int64_t deadline_ms)
{
    char run_id[64], said[300];
    const int port = ports_take();
    int fds[2];
    pid_t pids[3];

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    for (int r = 0; r < 3; r++)
        pids[r] = one_rank_start(ranks_pods_config(r, &two_by_two, port, run_id),
                                 r == 1 ? deadline_ms : 3 * deadline_ms, r == 1 ? fds[1] : -1);
    assert_int_equal(one_rank_ended(pids[1]), 138);
    one_rank_said(fds[0], said, sizeof(said));
    assert_int_equal(one_rank_ended(pids[0]), 138);
    (void)one_rank_ended(pids[2]); /* 138, or 140 when rank 0 was first */
    close(fds[0]);
    close(fds[1]);
    if (strstr(said, "waiting for rank 3"))
        return true;
    if (!strstr(said, "looking for rank 0") && !strstr(said, "does not answer") && !strstr(said, ", 3"))
        fail_msg("%s", said);
    return false;
}

static void test_missing_rank_is_named(void **state)
{
    int64_t deadline_ms = 1000;

    (void)state;
    while (!missing_rank_is_named(deadline_ms))
        deadline_ms = patience_grow(deadline_ms);
}

/* A rank that was killed while it waited, and started again, is welcome. */
static void test_rank_that_comes_again(void **state)
{
    char run_id[64];
    const int port = ports_take();
    pid_t pids[4];
    const struct timespec ts = {.tv_nsec = 50000000};

    (void)state;
    for (int r = 0; r < 3; r++)
        pids[r] = one_rank_start(ranks_pods_config(r, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, -1);
    nanosleep(&ts, NULL);
    for (int r = 0; r < 3; r += 2) { /* rank 0 with its watch, too */
        kill(pids[r], SIGKILL);
        assert_int_equal(waitpid(pids[r], NULL, 0), pids[r]);
        pids[r] = one_rank_start(ranks_pods_config(r, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, -1);
        nanosleep(&ts, NULL);
    }
    pids[3] = one_rank_start(ranks_pods_config(3, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, -1);
    for (int r = 0; r < 4; r++)
        assert_int_equal(one_rank_ended(pids[r]), 0);
}

enum { STRANGERS = 150 };

/* Every port that `pid` listens at, from the system's table. */
static int listening_ports(pid_t pid, int ports[8])
{
    char path[64], line[512];
    int n = 0;

    for (int v6 = 0; v6 < 2; v6++) {
        snprintf(path, sizeof(path), "/proc/%d/net/tcp%s", (int)pid, v6 ? "6" : "");
        cleanup_fclose FILE *f = fopen(path, "re");
        while (f && fgets(line, sizeof(line), f)) {
            unsigned port, st;
            unsigned long inode;
            char target[64], want[64];
            if (sscanf(line, " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s %*s %*s %*s %*s %lu", &port, &st,
                       &inode) != 3 ||
                st != 10)
                continue;
            snprintf(want, sizeof(want), "socket:[%lu]", inode);
            for (int fd = 0; fd < 64 && n < 8; fd++) {
                snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
                ssize_t len = readlink(path, target, sizeof(target) - 1);
                target[len > 0 ? len : 0] = '\0';
                if (strcmp(target, want) == 0)
                    ports[n++] = (int)port;
            }
        }
    }
    return n;
}

/* Wait until the process listens at so many ports. */
static void wait_listening(pid_t pid, int n, int ports[8])
{
    const int64_t limit_ms = clock_mono_ms() + PATIENCE_MOST_MS;

    for (int now; (now = listening_ports(pid, ports)) < n; poll(NULL, 0, 10))
        if (clock_mono_ms() > limit_ms)
            fail_msg("process %d listens at %d ports, expected %d", (int)pid, now, n);
}

static int visit(int port, bool speak)
{
    const struct sockaddr_in addr = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0 && speak)
        (void)!send(fd, "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: curious\r\n\r\n", 56, MSG_NOSIGNAL);
    return fd;
}

/* A scanner at every port of rank 0 and of rank 2, silent and not, while they wait and while they work. */
static void test_unauthenticated_at_every_port(void **state)
{
    char run_id[64];
    const int port = ports_take();
    int fds[STRANGERS], n_fds = 0, ports[8];
    pid_t pids[4];

    (void)state;
    for (int r = 0; r < 3; r++)
        pids[r] = one_rank_start(ranks_pods_config(r, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, -1);
    wait_listening(pids[0], 2, ports);
    wait_listening(pids[2], 1, ports);
    for (int who = 0; who < 3; who += 2) {
        int n = listening_ports(pids[who], ports);
        for (int i = 0; i < STRANGERS / 2; i++)
            fds[n_fds++] = visit(ports[i % n], i / n % 2 == 0);
    }
    pids[3] = one_rank_start(ranks_pods_config(3, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, -1);
    for (int r = 0; r < 4; r++)
        assert_int_equal(one_rank_ended(pids[r]), 0);
    for (int i = 0; i < n_fds; i++)
        close(fds[i]);
}

enum { IDLE = 1000, LORISES = 40 };

/* Connections that send a hello byte by byte, until the process is ended. */
static pid_t start_lorises(const int *ports, int n)
{
    const struct timespec ts = {.tv_nsec = 20000000};
    int fds[LORISES];
    const pid_t pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; i < LORISES; i++)
        fds[i] = visit(ports[i % n], false);
    for (int at = 0;; at = (at + 1) % 8) {
        for (int i = 0; i < LORISES; i++)
            (void)!send(fds[i], &"TKwatch1"[at], 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        nanosleep(&ts, NULL);
    }
}

/* A thousand connections that send nothing, and some that never finish, stand before every port of rank 0; then the others come. */
static void test_crowd_before_the_door(void **state)
{
    char run_id[64];
    const struct rlimit many = {4096, 4096};
    const int port = ports_take();
    static int fds[IDLE];
    int ports[8];
    pid_t pids[4];

    (void)state;
    pids[0] = one_rank_start(ranks_pods_config(0, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, -1);
    wait_listening(pids[0], 2, ports);
    if (setrlimit(RLIMIT_NOFILE, &many) < 0)
        skip();
    const pid_t lorises = start_lorises(ports, 2);
    for (int i = 0; i < IDLE; i++)
        fds[i] = visit(ports[i % 2], false);
    for (int r = 1; r < 4; r++)
        pids[r] = one_rank_start(ranks_pods_config(r, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, -1);
    for (int r = 0; r < 4; r++)
        assert_int_equal(one_rank_ended(pids[r]), 0);
    kill(lorises, SIGKILL);
    assert_int_equal(waitpid(lorises, NULL, 0), lorises);
    for (int i = 0; i < IDLE; i++)
        close(fds[i]);
}

/* A flood at both ports of rank 0 from one address keeps no rank out that has the key. */
static void test_a_flood(void **state)
{
    char run_id[64];
    const int port = ports_take();
    int ports[8];
    pid_t pids[2];

    (void)state;
    pids[0] = one_rank_start(ranks_pods_config(0, &two_with_key, port, run_id), RANKS_TIMEOUT_MS, -1);
    wait_listening(pids[0], 2, ports);
    struct flood f = flood_begin(ports, 2);
    const int64_t begin_ms = clock_mono_ms();
    pids[1] = one_rank_start(ranks_pods_config(1, &two_with_key, port, run_id), RANKS_TIMEOUT_MS, -1);
    for (int r = 0; r < 2; r++)
        assert_int_equal(one_rank_ended(pids[r]), 0);
    flood_end(&f, "two ranks met and summed", 1, begin_ms);
}

/* As in pods_links.c. */
struct link_hello {
    uint64_t magic;
    uint8_t token[WATCH_TOKEN_BYTES], nonce[JOBKEY_NONCE_BYTES];
    uint32_t kind, from, to, pad;
};

/* Between rank 1 and the watch: pass on what comes, but not WATCH_GO, which is kept in `go`. */
static size_t pass_until_go(int rank, int watch, char *go, size_t size)
{
    struct watch_head head = {0};
    char bytes[4096];
    size_t len = 0;

    for (;;) {
        struct pollfd pfds[2] = {{.fd = rank, .events = POLLIN}, {.fd = watch, .events = POLLIN}};
        poll(pfds, 2, -1);
        const ssize_t n = pfds[0].revents ? recv(rank, bytes, sizeof(bytes), 0) : -2;
        const ssize_t k = pfds[1].revents ? recv(watch, go + len, size - len, 0) : -2;
        if (n == 0 || n == -1 || k == 0 || k == -1)
            fail_msg("%s has ended the connection", n == 0 || n == -1 ? "the rank" : "the watch");
        if (n > 0)
            assert_int_equal(send(watch, bytes, (size_t)n, MSG_NOSIGNAL), n);
        len += k > 0 ? (size_t)k : 0;
        while (len >= sizeof(head) && (memcpy(&head, go, sizeof(head)), len >= sizeof(head) + head.len)) {
            if (head.type == WATCH_GO)
                return len;
            const size_t used = sizeof(head) + head.len;
            assert_int_equal(send(rank, go, used, MSG_NOSIGNAL), used);
            len -= used;
            memmove(go, go + used, len);
        }
    }
}

static int listen_at(int *port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&addr, len) == 0 && listen(fd, 4) == 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    *port = ntohs(addr.sin_port);
    return fd;
}

/* The next one that calls there. */
static int take_call(int listener)
{
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

/* As visit, when somebody listens there. */
static int reach(int port)
{
    struct sockaddr_in peer;
    socklen_t len = sizeof(peer);

    for (;;) {
        const int fd = visit(port, false);
        if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0)
            return fd;
        close(fd);
        poll(NULL, 0, 10);
    }
}

/* Between the two of each pair pass on what comes, until all of them have ended. */
static void pass_all(int pairs[][2], int n)
{
    char bytes[4096];

    for (int open = n; open;) {
        struct pollfd pfds[4];
        open = 0;
        for (int i = 0; i < 2 * n; i++)
            pfds[i] = (struct pollfd){.fd = pairs[i / 2][i % 2], .events = POLLIN};
        poll(pfds, (nfds_t)(2 * n), -1);
        for (int i = 0; i < 2 * n; i++) {
            int *pair = pairs[i / 2];
            const ssize_t k =
                pfds[i].revents && pair[0] >= 0 ? recv(pair[i % 2], bytes, sizeof(bytes), 0) : -2;
            if (k > 0)
                (void)!send(pair[1 - i % 2], bytes, (size_t)k, MSG_NOSIGNAL);
            if (k == 0 || k == -1) {
                close(pair[0]);
                close(pair[1]);
                pair[0] = pair[1] = -1;
            }
        }
        for (int i = 0; i < n; i++)
            open += pairs[i][0] >= 0;
    }
}

/* Two ranks of a job with a key, and somebody between rank 1 and the watch. */
struct sniffed {
    char run_id[64], go[4096]; /* go: WATCH_GO, which is not passed on yet */
    size_t len;                /* of `go` */
    struct rank_member of_0;   /* where rank 0 takes links */
    struct pass guess;         /* with another key */
    int from_rank, to_watch;
    pid_t pids[2];
};

static void begin_sniffed(struct sniffed *s, int said)
{
    const int port = ports_take();
    int sniffer;
    const int listener = listen_at(&sniffer);

    *s = (struct sniffed){.guess.key = {.has = true, .bytes = "a guess"}};
    for (int r = 0; r < 2; r++)
        s->pids[r] = one_rank_start(ranks_pods_config(r, &two_with_key, r ? sniffer : port, s->run_id),
                                    RANKS_TIMEOUT_MS, r ? said : -1);
    snprintf(s->guess.run_id, sizeof(s->guess.run_id), "%s", s->run_id);
    s->from_rank = take_call(listener);
    s->to_watch = reach(port);
    s->len = pass_until_go(s->from_rank, s->to_watch, s->go, sizeof(s->go));
    memcpy(&s->of_0, s->go + sizeof(struct watch_head) + sizeof(struct watch_go), sizeof(s->of_0));
    close(listener);
}

/* Somebody reads all that rank 1 and the watch say to each other, so he has the run id, the token, and where rank 0 takes links: he
 * opens none. */
static void test_a_sniffer_opens_no_link(void **state)
{
    struct sniffed s;

    (void)state;
    begin_sniffed(&s, -1);
    for (int i = 0; i < 3; i++) { /* the token itself, a proof by another key, and a link for messages */
        struct link_hello h = {.magic = WATCH_MAGIC, .kind = i == 2 ? 2 : 1, .from = 1};
        uint8_t proof[JOBKEY_PROOF_BYTES];
        char byte;
        memcpy(h.token, s.go + sizeof(struct watch_head), sizeof(h.token));
        pass_prove(&s.guess, PASS_CALLER, &h, sizeof(h), NULL, proof);
        if (i == 1)
            memcpy(h.token, proof, sizeof(proof));
        const int fd = reach((int)s.of_0.port);
        assert_int_equal(send(fd, &h, sizeof(h), MSG_NOSIGNAL), sizeof(h));
        assert_true(recv(fd, &byte, 1, 0) <= 0);
        close(fd);
    }
    assert_int_equal(send(s.from_rank, s.go, s.len, MSG_NOSIGNAL), s.len);
    pass_all((int[][2]){{s.from_rank, s.to_watch}}, 1);
    for (int r = 0; r < 2; r++)
        assert_int_equal(one_rank_ended(s.pids[r]), 0);
}

/* Somebody has taken over rank 0's address, and rank 1 calls there. He gets its hello and nothing more, whether he answers with
 * nothing, zeros, rank 1's own proof, or a proof by another key. When the attacker passes rank 1 on to rank 0 after all, the run continues. */
static void test_no_called_rank_without_a_proof(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct sniffed s;
        struct link_hello h;
        char said[300];
        uint8_t proof[JOBKEY_PROOF_BYTES] = {0};
        int fds[2], port;
        const int listener = listen_at(&port);
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        begin_sniffed(&s, fds[1]);
        struct rank_member moved = s.of_0;
        moved.port = (uint32_t)port;
        memcpy(s.go + sizeof(struct watch_head) + sizeof(struct watch_go), &moved, sizeof(moved));
        assert_int_equal(send(s.from_rank, s.go, s.len, MSG_NOSIGNAL), s.len);
        int fd = take_call(listener);
        assert_int_equal(recv(fd, &h, sizeof(h), MSG_WAITALL), sizeof(h));
        if (i == 2)
            memcpy(proof, h.token, sizeof(proof));
        else if (i == 3)
            pass_prove(&s.guess, PASS_CALLED, &h, sizeof(h), NULL, proof);
        if (i)
            assert_int_equal(send(fd, proof, sizeof(proof), MSG_NOSIGNAL), sizeof(proof));
        shutdown(fd, SHUT_WR);
        char byte;
        assert_int_equal(recv(fd, &byte, 1, 0), 0);
        close(fd);
        if (i)
            pass_all((int[][2]){{s.from_rank, s.to_watch}}, 1);
        else
            pass_all((int[][2]){{s.from_rank, s.to_watch}, {take_call(listener), reach((int)s.of_0.port)}},
                     2);
        close(listener);
        assert_int_equal(one_rank_ended(s.pids[1]), i ? 138 : 0);
        assert_int_equal(one_rank_ended(s.pids[0]), i ? 140 : 0);
        close(fds[1]);
        one_rank_said(fds[0], said, sizeof(said));
        assert_string_equal(
            said, i ? "open: the process at the address of rank 0 does not have the key of this job" : "");
        close(fds[0]);
    }
}

/* Each sends to the next before it receives, rank 0 even before a barrier in which the next is already: nobody waits in vain for
 * another's proof. */
static int messages_body(struct collectives *c, void *arg)
{
    const int next = (c->rank + 1) % c->world, before = (c->rank + c->world - 1) % c->world;
    struct err err = {0};
    int x = c->rank;

    (void)arg;
    if (c->rank)
        RANK_OK(c->barrier(c, RANKS_TIMEOUT_MS, &err));
    RANK_OK(c->send(c, &x, sizeof(x), next, RANKS_TIMEOUT_MS, &err));
    if (!c->rank)
        RANK_OK(c->barrier(c, RANKS_TIMEOUT_MS, &err));
    RANK_OK(c->recv(c, &x, sizeof(x), before, RANKS_TIMEOUT_MS, &err));
    RANK_CHECK(x == before);
    RANK_OK(c->barrier(c, RANKS_TIMEOUT_MS, &err));
    return 0;
}

/* Ranks 0 and 2 wait for their neighbours, which wait for the proofs of 2 and 0. */
static int crossed_body(struct collectives *c, void *arg)
{
    const int mine = c->rank ^ 1, other = c->rank == 1 ? 2 : 0;
    struct err err = {0};
    char byte = 'x';

    (void)arg;
    if (c->rank % 2) {
        RANK_OK(c->send(c, &byte, 1, other, RANKS_TIMEOUT_MS, &err));
        RANK_OK(c->send(c, &byte, 1, mine, RANKS_TIMEOUT_MS, &err));
    } else {
        RANK_OK(c->recv(c, &byte, 1, mine, RANKS_TIMEOUT_MS, &err));
        RANK_OK(c->recv(c, &byte, 1, 3 - c->rank, RANKS_TIMEOUT_MS, &err));
    }
    RANK_OK(c->barrier(c, RANKS_TIMEOUT_MS, &err));
    return 0;
}

static void test_messages_with_a_key(void **state)
{
    (void)state;
    ranks_run_pods(&with_key, crossed_body, NULL);
    ranks_run_pods(&two_with_key, messages_body, NULL);
    ranks_run_pods(&(struct ranks_layout){.world = 3, .per_pod = 1, .key = true}, messages_body, NULL);
    ranks_run_pods(&(struct ranks_layout){.world = 6, .per_pod = 2, .key = true}, messages_body, NULL);
}

static void expect_closed(int fd)
{
    char bytes[512];

    while (recv(fd, bytes, sizeof(bytes), 0) > 0)
        ;
    close(fd);
}

/* Somebody who knows the run id registers as rank 3 and proves nothing, with zeros, with the watch's own proof, or by speaking as if
 * he had; then the real rank 3 comes. */
static void test_no_rank_without_a_proof(void **state)
{
    char run_id[64];
    const int port = ports_take();
    pid_t pids[4];
    struct collectives_config cfg[4];

    (void)state;
    for (int r = 0; r < 4; r++)
        cfg[r] = ranks_pods_config(r, &with_key, port, run_id);
    pids[0] = one_rank_start(cfg[0], RANKS_TIMEOUT_MS, -1);
    for (int i = 0; i < 4; i++) {
        struct watch_first first = {
            .head = {.type = i == 3 ? WATCH_AWAIT : WATCH_REGISTER, .rank = 3, .len = sizeof(first.body)},
            .body = {.magic = WATCH_MAGIC, .version = WATCH_VERSION, .world = 4, .has_key = 1}};
        struct {
            struct watch_head head;
            struct watch_challenge body;
        } heard;
        struct {
            struct watch_head head;
            uint8_t proof[JOBKEY_PROOF_BYTES];
        } said = {.head = {.type = i == 2 ? WATCH_LEAVE : WATCH_PROOF, .len = sizeof(said.proof)}};
        snprintf(first.body.run_id, sizeof(first.body.run_id), "%s", run_id);
        const int fd = reach(port);
        assert_int_equal(send(fd, &first, sizeof(first), MSG_NOSIGNAL), sizeof(first));
        assert_int_equal(recv(fd, &heard, sizeof(heard), MSG_WAITALL), sizeof(heard));
        assert_int_equal(heard.head.type, WATCH_CHALLENGE);
        if (i == 1)
            memcpy(said.proof, heard.body.proof, sizeof(said.proof));
        assert_int_equal(send(fd, &said, sizeof(said), MSG_NOSIGNAL), sizeof(said));
        expect_closed(fd);
    }
    for (int r = 1; r < 4; r++)
        pids[r] = one_rank_start(cfg[r], RANKS_TIMEOUT_MS, -1);
    for (int r = 0; r < 4; r++)
        assert_int_equal(one_rank_ended(pids[r]), 0);
}

/* Somebody answers instead of the watch: with a refusal, with addresses, with the end of the run, with a proof of zeros or the
 * rank's own nonce. A rank that has the key believes nothing of it, and looks for rank 0 as long as it may. */
static void test_no_watch_without_a_proof(void **state)
{
    static const uint32_t types[] = {WATCH_REFUSED, WATCH_GO,        WATCH_END,
                                     WATCH_FAIL,    WATCH_CHALLENGE, WATCH_CHALLENGE};
    char run_id[64];
    int port;
    const int listener = listen_at(&port);
    struct collectives_config cfg = ranks_pods_config(1, &two_with_key, port, run_id);

    (void)state;
    const pid_t pid = one_rank_start(cfg, RANKS_TIMEOUT_MS, -1);
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        struct watch_first first;
        char out[sizeof(struct watch_head) + sizeof(struct watch_go) + 2 * sizeof(struct rank_member)] = "";
        const struct watch_head head = {.type = types[i],
                                        .kind = ERR_INVALID,
                                        .len = types[i] == WATCH_GO          ? sizeof(out) - sizeof(head)
                                               : types[i] == WATCH_CHALLENGE ? sizeof(struct watch_challenge)
                                                                             : 0};
        const int fd = take_call(listener);
        assert_int_equal(recv(fd, &first, sizeof(first), MSG_WAITALL), sizeof(first));
        memcpy(out, &head, sizeof(head));
        if (i == 5)
            memcpy(out + sizeof(head), first.body.nonce, sizeof(first.body.nonce));
        assert_int_equal(send(fd, out, sizeof(head) + head.len, MSG_NOSIGNAL), sizeof(head) + head.len);
        expect_closed(fd);
    }
    close(take_call(listener)); /* it still looks */
    close(listener);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Who has the right words and neither run id nor token is nobody: to the watch no rank 3, to a leader no rank 2. */
static void test_forged_words(void **state)
{
    const struct link_hello link = {.magic = WATCH_MAGIC, .token = "guess", .kind = 1, .from = 2};
    const struct {
        struct watch_head head;
        struct watch_register said;
    } rank = {.head = {.type = WATCH_REGISTER, .rank = 3, .len = sizeof(struct watch_register)},
              .said = {.magic = WATCH_MAGIC, .version = WATCH_VERSION, .world = 4, .run_id = "guess"}};
    const int port = ports_take();
    char run_id[64];
    int fds[4], ports[8];
    pid_t pids[4];

    (void)state;
    pids[0] = one_rank_start(ranks_pods_config(0, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, -1);
    wait_listening(pids[0], 2, ports);
    for (int i = 0; i < 4; i++) {
        const void *words = i < 2 ? (const void *)&link : &rank;
        const size_t len = i < 2 ? sizeof(link) : sizeof(rank);
        fds[i] = visit(ports[i % 2], false);
        assert_int_equal(send(fds[i], words, len, MSG_NOSIGNAL), len);
    }
    for (int r = 1; r < 4; r++)
        pids[r] = one_rank_start(ranks_pods_config(r, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, -1);
    for (int r = 0; r < 4; r++)
        assert_int_equal(one_rank_ended(pids[r]), 0);
    for (int i = 0; i < 4; i++)
        close(fds[i]);
}

/* Reductions and messages without end, of changing sizes. arg: how many ranks have begun, shared by all. */
static int stream_body(struct collectives *c, void *arg)
{
    struct err err = {0};
    static float x[100000];

    atomic_fetch_add((atomic_int *)arg, 1);
    for (size_t step = 0;; step++) {
        const size_t n = step * 7919 % ARRAY_LEN(x);
        if (c->all_reduce(c, x, n, NULL, RANKS_TIMEOUT_MS, &err) < 0 ||
            (step % 5 == 0 &&
             c->broadcast(c, x, n, (int)(step % (size_t)c->world), RANKS_TIMEOUT_MS, &err) < 0) ||
            (step % 7 == 0 && c->barrier(c, RANKS_TIMEOUT_MS, &err) < 0))
            return collectives_exit_code(&err);
    }
}

static void test_killed_at_a_random_step(void **state)
{
    const unsigned seed = (unsigned)seed_of_run();
    unsigned rnd = seed;
    atomic_int *begun = mmap(NULL, sizeof(*begun), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_true(begun != MAP_FAILED);
    for (int round = 0; round < 12; round++) {
        struct ranks r;
        rnd = rnd * 1103515245u + 12345u;
        const struct ranks_layout l = {.world = 2 + (int)(rnd >> 16) % 7,
                                       .per_pod = 1 + (int)(rnd >> 20) % 3};
        const int victim = (int)(rnd >> 8) % l.world % 8;
        const struct timespec ts = {.tv_nsec = 50000000 + (long)(rnd >> 12) % 200 * 1000000L};
        atomic_store(begun, 0);
        ranks_start_pods(&r, &l, stream_body, begun);
        while (atomic_load(begun) < l.world) /* before, they wait for it as long as they may */
            poll(NULL, 0, 1);
        nanosleep(&ts, NULL);
        const int64_t begin = clock_mono_ms();
        kill(r.pids[victim < 0 ? 0 : victim], SIGKILL);
        ranks_wait(&r);
        for (int i = 0; i < l.world; i++)
            if (i != victim && !(WIFEXITED(r.status[i]) && (WEXITSTATUS(r.status[i]) == 140 ||
                                                            WEXITSTATUS(r.status[i]) == RANK_FAILED)))
                fail_msg("seed %u, round %d: %d ranks, %d per pod, rank %d killed: rank %d ended with %#x",
                         seed, round, l.world, l.per_pod, victim, i, (unsigned)r.status[i]);
        assert_true(clock_mono_ms() - begin < RANKS_TIMEOUT_MS / 2);
    }
    munmap(begun, sizeof(*begun));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_64_ranks_in_8_pods),
        cmocka_unit_test(test_24_pods),
        cmocka_unit_test(test_another_run_is_refused),
        cmocka_unit_test(test_the_key_of_the_job),
        cmocka_unit_test(test_a_sniffer_opens_no_link),
        cmocka_unit_test(test_no_called_rank_without_a_proof),
        cmocka_unit_test(test_messages_with_a_key),
        cmocka_unit_test(test_no_rank_without_a_proof),
        cmocka_unit_test(test_no_watch_without_a_proof),
        cmocka_unit_test(test_a_rank_that_is_there_twice_may_try_again),
        cmocka_unit_test(test_wrong_numbers_are_refused),
        cmocka_unit_test(test_missing_rank_is_named),
        cmocka_unit_test(test_rank_that_comes_again),
        cmocka_unit_test(test_forged_words),
        cmocka_unit_test(test_unauthenticated_at_every_port),
        cmocka_unit_test(test_crowd_before_the_door),
        cmocka_unit_test(test_a_flood),
        cmocka_unit_test(test_killed_at_a_random_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
