/* test_resolve.c - lookups that take for ever, fail, come late, and connecting to what they found. */
#include "common/clock.h"
#include "host/resolve.h"
#include "test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

enum { LONG_MS = 600000 };

/* A name server that answers when it is let. */
struct server {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
    const char *answer; /* NULL: no such host */
    int asked, answered;
};

static int look(void *arg, const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    struct server *s = arg;

    assert_string_equal(host, "some.host");
    pthread_mutex_lock(&s->lock);
    s->asked++;
    while (!s->open)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    const int code = s->answer ? getaddrinfo(s->answer, service, hints, ret) : EAI_NONAME;
    pthread_mutex_lock(&s->lock);
    s->answered++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return code;
}

#define SERVER(text)                                                                                         \
    {                                                                                                        \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .answer = (text)             \
    }

static void open_up(struct server *s)
{
    pthread_mutex_lock(&s->lock);
    s->open = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void wait_answered(struct server *s, int n)
{
    pthread_mutex_lock(&s->lock);
    while (s->answered < n)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static int asked(struct server *s)
{
    pthread_mutex_lock(&s->lock);
    const int n = s->asked;
    pthread_mutex_unlock(&s->lock);
    return n;
}

static const char *why(const struct resolver *r, bool unresolved)
{
    bool is;
    const char *words = resolver_why(r, &is);

    assert_int_equal(is, unresolved);
    return words;
}

static int64_t in(int ms)
{
    return clock_mono_ms() + ms;
}

static void test_numbers_need_no_thread(void **state)
{
    struct server s = SERVER("127.0.0.1");
    struct addrinfo *all = NULL;
    cleanup_resolver struct resolver *v4 = resolver_new_with("127.0.0.1", 80, look, &s);
    cleanup_resolver struct resolver *v6 = resolver_new_with("::1", 80, look, &s);

    (void)state;
    assert_int_equal(resolver_wait(v4, 0, &all), 1);
    assert_int_equal(((struct sockaddr_in *)(void *)all->ai_addr)->sin_port, htons(80));
    freeaddrinfo(all);
    assert_int_equal(resolver_wait(v6, 0, &all), 1);
    freeaddrinfo(all);
    assert_int_equal(asked(&s), 0);
}

/* However often the caller polls, there is one lookup; when it comes back at last, its answer is used. */
static void test_slow_server_is_asked_once(void **state)
{
    struct server s = SERVER("127.0.0.1");
    struct addrinfo *all = NULL;
    cleanup_resolver struct resolver *r = resolver_new_with("some.host", 80, look, &s);

    (void)state;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(resolver_wait(r, in(i % 3), &all), 0);
        assert_null(all);
    }
    assert_true(asked(&s) <= 1);
    open_up(&s);
    assert_int_equal(resolver_wait(r, in(LONG_MS), &all), 1);
    assert_int_equal(((struct sockaddr_in *)(void *)all->ai_addr)->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    freeaddrinfo(all);
    wait_answered(&s, 1);
    assert_int_equal(asked(&s), 1);
    /* An address that was resolved is resolved again later: addresses change. */
    assert_int_equal(resolver_wait(r, in(LONG_MS), &all), 1);
    freeaddrinfo(all);
    wait_answered(&s, 2);
    assert_int_equal(asked(&s), 2);
}

static void test_no_such_host(void **state)
{
    struct server s = SERVER(NULL);
    struct addrinfo *all = NULL;
    cleanup_resolver struct resolver *r = resolver_new_with("some.host", 80, look, &s);

    (void)state;
    open_up(&s);
    assert_int_equal(resolver_wait(r, in(LONG_MS), &all), -1);
    assert_int_equal(resolver_dial(r, in(LONG_MS)), -1);
    assert_string_equal(why(r, true), gai_strerror(EAI_NONAME));
    wait_answered(&s, 2);
}

/* Names that were looked up, with a comma behind each; the last of them is known. */
struct asked {
    char names[600];
    const char *known;
    int code; /* of the others */
};

static int look_known(void *arg, const char *host, const char *service, const struct addrinfo *hints,
                      struct addrinfo **ret)
{
    struct asked *s = arg;

    strcat(strcat(s->names, host), ",");
    return s->known && strcmp(host, s->known) == 0 ? getaddrinfo("127.0.0.1", service, hints, ret) : s->code;
}

/* As a pod's resolv.conf has them, and as people write them: tabs, several lines of which the last counts, CRLF. */
static void test_search_domains(void **state)
{
    static const struct {
        const char *conf, *host, *known, *asked;
        int code, want;
    } cases[] = {
        {"nameserver 10.0.0.1\nsearch ns.svc.local svc.local local\noptions ndots:1\n", "j-0.j",
         "j-0.j.svc.local.", "j-0.j,j-0.j.ns.svc.local.,j-0.j.svc.local.,", EAI_NONAME, 0},
        {"search ns.svc.local\n", "j-0.j", NULL, "j-0.j,j-0.j.ns.svc.local.,", EAI_NONAME, EAI_NONAME},
        {"search a\nsearch\tb\t c \r\n", "j-0.j", NULL, "j-0.j,j-0.j.b.,j-0.j.c.,", EAI_NONAME, EAI_NONAME},
        {"search a\ndomain b", "j-0.j", NULL, "j-0.j,j-0.j.b.,", EAI_NONAME, EAI_NONAME},
        {"# search a\nsearching b\n", "j-0.j", NULL, "j-0.j,", EAI_NONAME, EAI_NONAME},
        {"search a\n", "j-0.j", "j-0.j", "j-0.j,", EAI_NONAME, 0},
        {"search a\n", "j-0.j.", NULL, "j-0.j.,", EAI_NONAME, EAI_NONAME},
        {"search a\n", "j-0", NULL, "j-0,", EAI_NONAME, EAI_NONAME}, /* every libc tries it itself */
        {"search a\n", "j-0.j", NULL, "j-0.j,", EAI_AGAIN, EAI_AGAIN},
        {NULL, "j-0.j", NULL, "j-0.j,", EAI_NONAME, EAI_NONAME},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
        struct asked s = {.known = cases[i].known, .code = cases[i].code};
        struct addrinfo *all = NULL;
        char path[] = "/tmp/test-resolve-XXXXXX";
        const int fd = mkstemp(path);
        assert_true(fd >= 0);
        if (cases[i].conf)
            dprintf(fd, "%s", cases[i].conf);
        else
            unlink(path);
        close(fd);
        const int code = resolver_search(path, look_known, &s, cases[i].host, "80", &hints, &all);
        unlink(path);
        assert_string_equal(s.names, cases[i].asked);
        assert_int_equal(code, cases[i].want);
        if (code == 0)
            freeaddrinfo(all);
    }
}

/* Freed while the lookup is under way: it frees what it finds, says LeakSanitizer. */
static void test_left_behind(void **state)
{
    struct server s = SERVER("127.0.0.1");
    struct addrinfo *all = NULL;
    struct resolver *r = resolver_new_with("some.host", 80, look, &s);

    (void)state;
    assert_int_equal(resolver_wait(r, in(5), &all), 0);
    assert_int_equal(resolver_dial(r, in(5)), -1);
    assert_string_equal(why(r, true), "no name server has answered");
    resolver_free(r);
    resolver_free(NULL);
    open_up(&s);
    wait_answered(&s, 1);
}

static int listen_here(int *port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&addr, len) == 0 && listen(fd, 4) == 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    *port = ntohs(addr.sin_port);
    return fd;
}

/* The first address refuses; the second one serves. */
static int look_two(void *arg, const char *host, const char *service, const struct addrinfo *hints,
                    struct addrinfo **ret)
{
    struct addrinfo *second = NULL;

    (void)arg, (void)host;
    if (getaddrinfo("127.0.0.2", service, hints, ret) != 0 ||
        getaddrinfo("127.0.0.1", service, hints, &second) != 0)
        return EAI_FAIL;
    (*ret)->ai_next = second;
    return 0;
}

static void test_dial(void **state)
{
    int port;
    struct server s = SERVER("127.0.0.1");
    cleanup_close int listener = listen_here(&port);
    cleanup_resolver struct resolver *by_name = resolver_new_with("some.host", port, look, &s);
    cleanup_resolver struct resolver *two = resolver_new_with("two.hosts", port, look_two, NULL);

    (void)state;
    open_up(&s);
    cleanup_close int a = resolver_dial(by_name, in(LONG_MS));
    assert_true(a >= 0);
    wait_answered(&s, 1);
    cleanup_close int b = resolver_dial(two, in(LONG_MS));
    assert_true(b >= 0);
    close(listener);
    listener = -1;
    assert_int_equal(resolver_dial(two, in(LONG_MS)), -1);
    assert_string_equal(why(two, false), "Connection refused");
}

/* The system's own, which answers without a network. */
static void test_localhost(void **state)
{
    struct addrinfo *all = NULL;
    cleanup_resolver struct resolver *r = resolver_new("localhost", 1);

    (void)state;
    assert_int_equal(resolver_wait(r, in(LONG_MS), &all), 1);
    freeaddrinfo(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_need_no_thread),
        cmocka_unit_test(test_slow_server_is_asked_once),
        cmocka_unit_test(test_no_such_host),
        cmocka_unit_test(test_search_domains),
        cmocka_unit_test(test_left_behind),
        cmocka_unit_test(test_dial),
        cmocka_unit_test(test_localhost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
