/* tls.c - certificates from the openssl command, and its s_server. */
#include "tls.h"

#include "test.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[64];
static char cwd[4096];

/* A throw-away authority, a certificate of its own for "api.example", a stranger's authority. */
static const char make_certs[] =
    "set -e\n"
    "key() { openssl ecparam -name prime256v1 -genkey -noout -out $1.key; }\n"
    "ca() { key $1; openssl req -x509 -new -key $1.key -days 2 -subj /CN=$1 -out $1.crt; }\n"
    "sign() { key $1; openssl req -new -key $1.key -subj /CN=$1 -out $1.csr; issuer=${4:-ca};\n"
    "  printf \"$2\" > $1.ext; openssl x509 -req -in $1.csr -CA $issuer.crt -CAkey $issuer.key "
    "-CAcreateserial -days ${3:-2} -extfile $1.ext -out $1.crt; }\n"
    "ca ca; ca stranger\n"
    "sign server 'subjectAltName=DNS:api.example'\n"
    "sign local 'subjectAltName=IP:127.0.0.1'\n"
    "sign expired 'subjectAltName=IP:127.0.0.1' -1\n"
    "sign for-clients 'subjectAltName=IP:127.0.0.1\\nextendedKeyUsage=clientAuth'\n"
    "sign forged 'subjectAltName=IP:127.0.0.1' 2 local\n"
    "key self\n"
    "openssl req -x509 -new -key self.key -days 2 -subj /CN=self -addext subjectAltName=IP:127.0.0.1 -out "
    "self.crt\n";

static int run_script(const char *script)
{
    char command[4096];

    snprintf(command, sizeof(command), "{ %s } >log 2>&1", script);
    return system(command); /* NOLINT: a fixed script of this test */
}

int tls_setup(void **ctx)
{
    (void)ctx;
    snprintf(dir, sizeof(dir), "/tmp/test_tls_XXXXXX");
    if (!mkdtemp(dir) || !getcwd(cwd, sizeof(cwd)) || chdir(dir) < 0)
        return -1;
    return run_script(make_certs) == 0 ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

int tls_teardown(void **ctx)
{
    (void)ctx;
    if (chdir(cwd) < 0)
        return -1;
    return nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* What it prints comes to s->out. */
static void start(struct tls_server *s, const char *const *argv)
{
    int fds[2];

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    s->pid = fork();
    if (s->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it does not outlive a test that fails */
        dup2(fds[1], 1);
        dup2(fds[1], 2);
        execvp("openssl", (char *const *)argv);
        _exit(127);
    }
    close(fds[1]);
    s->out = fdopen(fds[0], "r");
}

/* The machine chooses the port, and the server prints it. */
struct tls_server tls_serve(const char *cert, const char *const *extra)
{
    struct tls_server s = {0};
    char crt[32], key[32], line[256];
    const char *argv[24] = {"openssl", "s_server", "-accept", "127.0.0.1:0", "-www", "-cert",
                            crt,       "-key",     key};

    snprintf(crt, sizeof(crt), "%s.crt", cert);
    snprintf(key, sizeof(key), "%s.key", cert);
    for (int i = 9; extra && *extra && i < 23; i++)
        argv[i] = *extra++;
    start(&s, argv);
    while (!s.port && fgets(line, sizeof(line), s.out))
        if (strncmp(line, "ACCEPT ", 7) == 0 && strrchr(line, ':'))
            s.port = atoi(strrchr(line, ':') + 1);
    assert_in_range(s.port, 1, 65535);
    return s;
}

void tls_stop(struct tls_server *s)
{
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    fclose(s->out);
}
