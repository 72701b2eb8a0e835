/* test_stack.c - where a Python process is, by what its faulthandler wrote. */
#include "launcher/stack.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

#define HEAD "Fatal Python error: Aborted\n\n"
#define CURRENT "Current thread 0x00007f0123 [python3] (most recent call first):\n"
#define THREAD "Thread 0x00007f0999 (most recent call first):\n  File \"/app/other.py\", line 3 in run\n\n"
#define TORCH "/usr/lib/python3.12/site-packages/torch"

static struct stack read_text(const char *text)
{
    return stack_read(sv_from(text));
}

static void expect(const char *text, bool waits, const char *at)
{
    const struct stack s = read_text(text);

    assert_true(s.known);
    assert_string_equal(s.at, at);
    assert_int_equal(s.waits, waits);
    assert_true(s.place >= 0 && s.place <= INT64_MAX / 2);
}

static void test_the_line_of_the_user(void **state)
{
    (void)state;
    expect("last words\n" HEAD CURRENT
           "  File \"/app/train.py\", line 14 in step\n  File \"/app/train.py\", line 20 in "
           "<module>\n",
           false, "train.py:14 step()");
    expect(HEAD THREAD CURRENT "  File \"/usr/lib/python3.12/threading.py\", line 1 in wait\n"
                               "  File \"<frozen runpy>\", line 1 in run\n  File \"a.py\", line 2 in f\n",
           false, "a.py:2 f()");
    /* A library of others, without any code of the user's above it. */
    expect(HEAD CURRENT
           "  File \"/venv/lib/python3.11/site-packages/lightning/loop.py\", line 7 in advance\n",
           false, "loop.py:7 advance()");
    expect(HEAD CURRENT "  File \"/usr/lib/python3.12/queue.py\", line 171 in get", false,
           "queue.py:171 get()");
    /* Of two processes the first one counts. */
    expect(HEAD CURRENT "  File \"a.py\", line 1 in f\n\n" HEAD CURRENT "  File \"b.py\", line 2 in g\n",
           false, "a.py:1 f()");
}

static void test_calls_that_wait_for_others(void **state)
{
    static const struct {
        const char *file, *function;
        bool waits;
    } cases[] = {
        {TORCH "/distributed/distributed_c10d.py", "all_reduce", true},
        {TORCH "/distributed/c10d_logger.py", "wrapper", true},
        {TORCH "/nn/parallel/distributed.py", "_sync_module_states", true},
        {TORCH "/autograd/graph.py", "_engine_run_backward", true},
        {TORCH "/cuda/__init__.py", "synchronize", true},
        {TORCH "/distributed/elastic/multiprocessing/errors/__init__.py", "wrapper", false},
        {TORCH "/nn/modules/conv.py", "forward", false},
        {TORCH "/utils/data/dataloader.py", "_try_get_data", false},
        {"/app/own.py", "backward", false},
    };
    char text[1000];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        /* Behind a line of Python's own, and called by the user's. */
        snprintf(text, sizeof(text),
                 HEAD CURRENT "  File \"/usr/lib/python3.12/contextlib.py\", line 81 in inner\n"
                              "  File \"%s\", line 5 in %s\n  File \"/app/train.py\", line 20 in main\n"
                              "  File \"" TORCH "/distributed/run.py\", line 1 in <module>\n",
                 cases[i].file, cases[i].function);
        expect(text, cases[i].waits, i == 8 ? "own.py:5 backward()" : "train.py:20 main()");
    }
}

static void test_the_same_place(void **state)
{
    (void)state;
    const char *a = HEAD CURRENT "  File \"/x/a.py\", line 1 in f\n",
               *b = HEAD CURRENT "  File \"/x/a.py\", line 2 in f\n";
    assert_true(read_text(a).place == read_text(a).place && read_text(a).place != read_text(b).place);
}

static void test_what_is_no_stack(void **state)
{
    static const char *const texts[] = {"",
                                        "\n",
                                        HEAD,
                                        HEAD THREAD,
                                        CURRENT "  File \"a.py\", line 1 in f\n",
                                        HEAD CURRENT,
                                        HEAD CURRENT "  File \"a.py\" line 1 in f\n",
                                        HEAD CURRENT "  File \"a.py\", line 1\n",
                                        HEAD CURRENT "  File \"",
                                        HEAD CURRENT "  File \"a.py\", line 12345678901 in f\n"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(read_text(texts[i]).known);
}

/* Names of any length and bytes; more frames than faulthandler writes; a text that ends anywhere. */
static void test_hostile(void **state)
{
    static char text[64 * 1024];
    size_t n = (size_t)snprintf(text, sizeof(text), HEAD CURRENT "  File \"/");

    (void)state;
    memset(text + n, '\xe4', 500);
    n += 500;
    n += (size_t)snprintf(text + n, sizeof(text) - n, "\", line 999999999 in ");
    memset(text + n, '\033', 500);
    n += 500;
    const struct stack s = stack_read((struct sv){text, n});
    assert_true(s.known && strlen(s.at) < STACK_AT_BYTES);
    for (const char *c = s.at; *c; c++)
        assert_true(*c >= 0x20 && *c < 0x7f);
    n = (size_t)snprintf(text, sizeof(text), HEAD CURRENT);
    for (int i = 0; i < 1000; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "  File \"a.py\", line %d in f\n", i);
    for (size_t cut = 0; cut < n; cut += 97) {
        const struct stack part = stack_read((struct sv){text, cut});
        assert_true(!part.known || strncmp(part.at, "a.py:0", 6) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_line_of_the_user),
        cmocka_unit_test(test_calls_that_wait_for_others),
        cmocka_unit_test(test_the_same_place),
        cmocka_unit_test(test_what_is_no_stack),
        cmocka_unit_test(test_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
