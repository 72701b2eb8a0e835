/* test_tmux.c - what kubectl ptj watch looks like in a terminal that others wrote. Skipped without tmux.
 *
 * usage: test_tmux <kubectl-ptj>
 */
#include "test.h"

#include "ptj.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SCREEN_MAX = 16384, PATIENCE = 12000 /* looks, each of which takes longer than its 50 ms */ };

/* Run tmux on a server of this test's own; *ret gets what it prints. */
static int tmux(const struct ptj *p, const char *command, char ret[static SCREEN_MAX])
{
    char line[1024];
    size_t n;

    snprintf(line, sizeof(line), "tmux -S %s/tmux -f /dev/null %s 2>/dev/null", p->dir, command);
    FILE *f = popen(line, "r");
    assert_non_null(f);
    n = fread(ret, 1, SCREEN_MAX - 1, f);
    ret[n] = '\0';
    return pclose(f);
}

static void until(const struct ptj *p, const char *text)
{
    static char screen[SCREEN_MAX];

    for (int i = 0; i < PATIENCE; i++) {
        if (tmux(p, "capture-pane -p", screen) == 0 && strstr(screen, text))
            return;
        usleep(50000);
    }
    fail_msg("\"%s\" never came on the screen:\n%s", text, screen);
}

static int end(void **state)
{
    static char out[SCREEN_MAX];
    struct ptj *p = *state;
    char file[128];

    (void)tmux(p, "kill-server", out);
    snprintf(file, sizeof(file), "%s/tmux", p->dir);
    unlink(file);
    ptj_end(p);
    return 0;
}

static void test_screen(void **state)
{
    static char out[SCREEN_MAX];
    struct ptj *p = *state;
    char command[512];

    ptj_put_job(p, "bert", "{}",
                "{\"phase\":\"Running\",\"ready\":\"2/"
                "2\",\"progress\":{\"time\":\"2026-11-24T11:59:50Z\",\"percent\":"
                "50,\"loss\":0.5}}");
    ptj_put_job(p, "waits", "{}",
                "{\"phase\":\"Pending\",\"ready\":\"0/4\",\"reason\":\"PodsStarting 0/4\"}");
    snprintf(
        command, sizeof(command),
        "-u new-session -d -x 80 -y 10 'KUBECTL=%s/kubectl LC_ALL=C.UTF-8 %s watch; echo status $?; cat'",
        p->dir, p->program);
    assert_int_equal(tmux(p, command, out), 0);
    until(p, "bert         Running     2/2 \xe2\x96\x88\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88"
             "\xc2\xb7\xc2\xb7\xc2\xb7\xc2\xb7\xc2\xb7  50%            0.5 \xe2\x96\x85");
    until(p, "waits        Pending     0/4 PodsStarting 0/4");
    assert_int_equal(tmux(p, "resize-window -x 40 -y 4", out), 0);
    until(p, "2 more: 1 Running, 1 Pending\nq quits, Enter why, l logs\n");
    assert_int_equal(tmux(p, "resize-window -x 120 -y 12", out), 0);
    until(p, "waits        Pending     0/4 PodsStarting 0/4");
    assert_int_equal(tmux(p, "send-keys q", out), 0);
    until(p, "status 0");
    until(p, "bert         Running     2/2"); /* the last frame stays */
    assert_int_equal(tmux(p, "display-message -p '#{alternate_on} #{cursor_flag}'", out), 0);
    assert_string_equal(out, "0 1\n");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_screen, ptj_setup, end)};

    if (argc < 2)
        return 2;
    if (system("tmux -V >/dev/null 2>&1") != 0) {
        puts("skipped: tmux is not installed");
        return 77;
    }
    ptj_program = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
