/* display.c - draw the board of jobs on the terminal. */
#include "cli/watch/display.h"

#include "cli/terminal.h"
#include "common/fsutil.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void measure(struct display *d)
{
    const struct terminal t = terminal_of(d->tty.out);

    d->table.columns = t.columns;
    d->table.rows = t.rows;
    d->table.colours = t.colours;
    d->table.unicode = t.unicode;
}

/* Keys are looked for in the foreground only: reading from the background would stop the program, and what is typed there is
 * meant for the shell. */
static void follow_keys(struct display *d)
{
    const bool wanted = d->tty.active && d->tty.in >= 0 && !d->hung_up;
    struct err err;

    if (d->reads_keys && !wanted) {
        kube_loop_fd_remove(d->loop, &d->keys);
        d->reads_keys = false;
    } else if (!d->reads_keys && wanted) {
        d->reads_keys = kube_loop_fd_add(d->loop, &d->keys, &err) == 0;
    }
}

static void draw(struct display *d)
{
    cleanup_buf struct buf frame = BUF_INIT(TABLE_BYTES_MAX);
    cleanup_buf struct buf out = BUF_INIT(2 * TABLE_BYTES_MAX);

    d->drawn_ms = kube_loop_now_ms(d->loop);
    d->begun = true;
    if (!d->tty.active &&
        !tty_begin(&d->tty)) { /* nothing tells a running program that it was brought to the foreground */
        kube_loop_timer_set(d->loop, &d->frame, d->drawn_ms + DISPLAY_BACKGROUND_MS);
        return;
    }
    follow_keys(d);
    d->table.now_ms = kube_loop_wall_ms(d->loop);
    d->table.alarm = d->note[0];
    d->table.note = d->note[0] ? d->note : d->tty.in >= 0 ? "q quits" : NULL;
    table_draw(&d->table, d->board, &frame);
    paint_frame(&d->paint, &frame, d->table.rows, &out);
    if (out.len && tty_write(&d->tty, out.data, out.len) < 0)
        d->quit(d->ctx);
}

static void on_frame(void *ctx)
{
    draw(ctx);
}

static void on_tick(void *ctx)
{
    struct display *d = ctx;

    display_changed(d);
    kube_loop_timer_set(d->loop, &d->tick, kube_loop_now_ms(d->loop) + DISPLAY_TICK_MS);
}

static void on_keys(void *ctx, short revents)
{
    struct display *d = ctx;
    char keys[64];
    const ssize_t n = revents & POLLIN ? read(d->tty.in, keys, sizeof(keys)) : 0;

    if (n > 0 && !memchr(keys, 'q', (size_t)n) && !memchr(keys, 'Q', (size_t)n))
        return;
    if (n <= 0) { /* hung up; where that is all, SIGHUP ends us */
        d->hung_up = true;
        follow_keys(d);
        return;
    }
    d->quit(d->ctx);
}

void display_begin(struct display *d)
{
    tty_init(&d->tty);
    d->paint = (struct paint)PAINT_INIT;
    d->frame = (struct kube_loop_timer){.fire = on_frame, .ctx = d};
    d->tick = (struct kube_loop_timer){.fire = on_tick, .ctx = d};
    d->keys = (struct kube_loop_fd){.ready = on_keys, .ctx = d, .fd = d->tty.in, .events = POLLIN};
    measure(d);
    d->drawn_ms = kube_loop_now_ms(d->loop); /* in a moment there is something to show */
    kube_loop_timer_set(d->loop, &d->tick, kube_loop_now_ms(d->loop) + DISPLAY_TICK_MS);
}

void display_changed(struct display *d)
{
    if (!kube_loop_timer_is_set(&d->frame))
        kube_loop_timer_set(d->loop, &d->frame, d->drawn_ms + DISPLAY_FRAME_MS);
}

void display_signal(struct display *d, int signal)
{
    if (signal == SIGTSTP)
        tty_stop(&d->tty);
    else if (signal == SIGCONT && d->tty.active)
        (void)tty_begin(&d->tty); /* the shell had the terminal meanwhile */
    follow_keys(d);
    measure(d);
    paint_forget(&d->paint);
    display_changed(d);
}

/* Without `note` in the frame: the terminal is the shell's again. */
static void leave_frame(struct display *d)
{
    cleanup_buf struct buf frame = BUF_INIT(TABLE_BYTES_MAX);

    d->table.note = d->note[0] ? d->note : NULL;
    d->table.now_ms = kube_loop_wall_ms(d->loop);
    table_draw(&d->table, d->board, &frame);
    (void)fs_write_all(d->tty.out, buf_str(&frame), frame.len);
}

void display_end(struct display *d, bool complete)
{
    const bool leaves = d->tty.active || (complete && !d->begun);

    kube_loop_timer_cancel(d->loop, &d->frame);
    kube_loop_timer_cancel(d->loop, &d->tick);
    if (d->reads_keys)
        kube_loop_fd_remove(d->loop, &d->keys);
    tty_end(&d->tty);
    if (leaves)
        leave_frame(d);
    paint_release(&d->paint);
}
