/* test_pod_source.c - missing data: what the trainer tries, what it reports, and whether it tries again. */
#include "test.h"

#include "trainer/data/files.h"
#include "trainer/data/http_server.h"
#include "trainer/data/pod_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    char folder[PATH_MAX];
    struct http_server server;
    struct data_spec spec;
    struct pod_data_options o;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    files_folder(f->folder);
    http_server_start(&f->server);
    f->spec = (struct data_spec){.format = &format_idx, .stats = 1, .std = {1}};
    f->o = (struct pod_data_options){
        .source = {.spec = &f->spec, .dir = f->folder},
        .download = true,
        .limits = {.bytes_max = FETCH_BYTES_MAX, .stall_s = FETCH_STALL_S, .pause_ms = 1, .lock_ms = 1000},
        .timeout_ms = 1000};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    unsetenv("https_proxy");
    unsetenv("http_proxy");
    http_server_stop(&f->server);
    files_remove(f->folder);
    free(f);
    return 0;
}

static void expect(struct fixture *f, enum err_kind kind, const char *says)
{
    struct err err = {0};

    assert_null(pod_data_find(&f->o, &err));
    if (err.kind != kind || !strstr(err.msg, says) || !strstr(err.msg, f->folder))
        fail_msg("kind %d \"%s\", expected %d \"%s\"", err.kind, err.msg, kind, says);
}

/* Whatever is downloaded comes from there. */
static void from(struct fixture *f, const char *place)
{
    char proxy[64];

    snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", f->server.port);
    setenv("http_proxy", proxy, 1);
    setenv("https_proxy", proxy, 1);
    snprintf(f->server.seen->proxied, sizeof(f->server.seen->proxied), "%s", place);
}

/* Neither files nor a network: for good. The line has what to do. */
static void without_files_and_network_it_ends_for_good(void **state)
{
    struct fixture *f = *state;

    setenv("https_proxy", "http://127.0.0.1:1", 1);
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    expect(f, ERR_NOT_FOUND,
           "expected MNIST/raw/{train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz] in it, and cannot");
    expect(f, ERR_NOT_FOUND, "(--no_download: do not try): Failed to connect to 127.0.0.1 port 1");
    f->spec.dataset = DATASET_FASHION_MNIST;
    expect(f, ERR_NOT_FOUND, "expected FashionMNIST/raw/{train,");
    from(f, "/good");
    f->o.download = false;
    expect(f, ERR_NOT_FOUND, "--data, --no_download: ");
    expect(f, ERR_NOT_FOUND, "expected train-images-idx3-ubyte[.gz] in its folders");
    assert_int_equal(f->server.seen->requests, 0);
}

/* No files and no permission to write them there: for good, and in one line. Root may write everywhere, so it is not root that looks. */
static void without_files_and_rights_it_ends_for_good(void **state)
{
    struct fixture *f = *state;
    const bool root = geteuid() == 0;
    char says[160];

    from(f, "/good");
    assert_int_equal(chmod(f->folder, 0500), 0);
    if (root)
        assert_int_equal(seteuid(65534), 0);
    snprintf(says, sizeof(says),
             ": no MNIST/raw/train-images-idx3-ubyte[.gz] there, and uid %u may not write it (Permission "
             "denied): give --data",
             (unsigned)geteuid());
    expect(f, ERR_NOT_FOUND, says);
    f->spec.dataset = DATASET_FASHION_MNIST;
    expect(f, ERR_NOT_FOUND, "or one with the files (Debian: dataset-fashion-mnist)");
    if (root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(f->folder, 0700), 0);
    assert_int_equal(f->server.seen->requests, 0);
}

/* A server that is busy may have time later. */
static void what_may_pass_says_so(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *place;
        enum err_kind kind;
        const char *says;
    } cases[] = {
        {"/503", ERR_TRANSIENT, "/train-images-idx3-ubyte.gz: the server answered 503"},
        {"/none", ERR_NOT_FOUND, "no Fashion-MNIST, and no download: http://fashion-mnist."},
        {"/none", ERR_NOT_FOUND, "/train-images-idx3-ubyte.gz: the server answered 404"},
        {"/wrong", ERR_INVALID, "SHA-256 "},
    };

    f->spec.dataset = DATASET_FASHION_MNIST;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        from(f, cases[i].place);
        expect(f, cases[i].kind, cases[i].says);
    }
    assert_int_equal(f->server.seen->requests, 6); /* the busy one three times */
}

static bool at_once(void *ctx)
{
    (void)ctx;
    return true;
}

static void a_stop_is_said(void **state)
{
    struct fixture *f = *state;

    f->spec.dataset = DATASET_FASHION_MNIST;
    f->o.limits.stopped = at_once;
    from(f, "/stall");
    expect(f, ERR_TRANSIENT, "no data, and the download was stopped");
}

/* Files under another name are not downloaded again beside them: for good, and without a request to a server. */
static void files_of_other_names_are_named(void **state)
{
    struct fixture *f = *state;
    char path[PATH_MAX + 32];

    from(f, "/good");
    snprintf(path, sizeof(path), "%s/train-images.idx3-ubyte", f->folder);
    files_write(path, "x", 1);
    expect(f, ERR_INVALID, "/train-images.idx3-ubyte: expected a name as {train,t10k}-");
    f->o.download = false;
    expect(f, ERR_INVALID, "/train-images.idx3-ubyte: expected a name as {train,t10k}-");
    assert_int_equal(f->server.seen->requests, 0);
}

/* Other formats have no home on the network. */
static void other_data_are_not_looked_for(void **state)
{
    struct fixture *f = *state;

    from(f, "/good");
    f->spec.format = &format_idx;
    f->spec.train = "images";
    f->spec.train_targets = "labels";
    expect(f, ERR_NOT_FOUND, "images");
    f->spec.format = &format_tokens;
    f->spec.train = "*train*.bin";
    f->spec.train_targets = NULL;
    f->spec.rows = 8;
    expect(f, ERR_NOT_FOUND, "/*train*.bin: no such file: --data and --train_files say what is read");
    assert_int_equal(f->server.seen->requests, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_files_and_network_it_ends_for_good),
        TEST(without_files_and_rights_it_ends_for_good),
        TEST(what_may_pass_says_so),
        TEST(a_stop_is_said),
        TEST(files_of_other_names_are_named),
        TEST(other_data_are_not_looked_for),
    };

    unsetenv("http_proxy");
    unsetenv("all_proxy");
    setenv("no_proxy", "", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
