/* display.c - draw the table of jobs, or a page of text, on the terminal, and take keys. */
#include "cli/watch/display.h"

#include "cli/terminal.h"
#include "common/fsutil.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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

/* The selected job is found by its names; when it is gone, the job that now has its row is selected. */
static void move_selection(struct display *d, struct board_job *const *jobs, int n, int by)
{
    for (int i = 0; i < n; i++)
        if (strcmp(jobs[i]->ns, d->ns) == 0 && strcmp(jobs[i]->name, d->name) == 0)
            d->row = i;
    d->row += by;
    d->row = d->row >= n ? n - 1 : d->row;
    d->row = d->row < 0 ? 0 : d->row;
    snprintf(d->ns, sizeof(d->ns), "%s", n ? jobs[d->row]->ns : "");
    snprintf(d->name, sizeof(d->name), "%s", n ? jobs[d->row]->name : "");
}

static void draw_table(struct display *d, bool keys, struct buf *frame)
{
    size_t n;
    struct board_job **jobs = board_sorted(d->board, &n);

    move_selection(d, jobs, (int)n, 0);
    d->table.now_ms = kube_loop_wall_ms(d->loop);
    d->table.alarm = d->note[0];
    d->table.note = d->note[0] ? d->note : !keys ? NULL : n ? "q quits, Enter why, l logs" : "q quits";
    d->table.selected = keys && n ? d->row : TABLE_NONE;
    table_draw(&d->table, jobs, n, frame);
    free(jobs);
}

/* The lines of the page that fit, and below them the hint on keys. */
static void draw_text(struct display *d, struct buf *frame)
{
    cleanup_buf struct buf text = BUF_INIT(TABLE_BYTES_MAX);
    const int rows = d->table.rows > 1 ? d->table.rows - 1 : 1;
    const char *hint = d->text(d->text_ctx, d->table.columns, rows, &text);
    struct sv rest = {buf_str(&text), text.len}, line;
    int n = 0;

    for (size_t i = 0; i < text.len; i++)
        n += text.data[i] == '\n';
    d->scroll = d->scroll > n - rows ? n - rows : d->scroll;
    d->scroll = d->scroll < 0 ? 0 : d->scroll;
    for (int i = 0; i < d->scroll + rows && rest.len && sv_next(&rest, '\n', &line); i++)
        if (i >= d->scroll)
            buf_printf(frame, NULL, "%.*s\n", (int)line.len, line.p);
    buf_printf(frame, NULL, "%s%s\n", d->note[0] ? d->note : hint,
               d->scroll + rows < n ? ", arrows scroll" : "");
}

static void draw(void *ctx)
{
    struct display *d = ctx;
    cleanup_buf struct buf frame = BUF_INIT(TABLE_BYTES_MAX);
    cleanup_buf struct buf out = BUF_INIT(2 * TABLE_BYTES_MAX);

    d->drawn_ms = kube_loop_now_ms(d->loop);
    d->begun = true;
    if (!d->tty.active &&
        !tty_begin(
            &d->tty)) { /* nothing reports to a running program that it was brought to the foreground */
        kube_loop_timer_set(d->loop, &d->frame, d->drawn_ms + DISPLAY_BACKGROUND_MS);
        return;
    }
    follow_keys(d);
    if (d->tty.normal)
        return;
    if (d->text)
        draw_text(d, &frame);
    else
        draw_table(d, d->tty.in >= 0, &frame);
    paint_frame(&d->paint, &frame, d->table.rows, &out);
    if (out.len && tty_write(&d->tty, out.data, out.len) < 0)
        d->key(d->ctx, KEY_QUIT);
}

static void on_tick(void *ctx)
{
    struct display *d = ctx;

    display_changed(d);
    kube_loop_timer_set(d->loop, &d->tick, kube_loop_now_ms(d->loop) + DISPLAY_TICK_MS);
}

static void move(struct display *d, int by)
{
    size_t n;

    if (d->text) {
        d->scroll += by;
    } else {
        struct board_job **jobs = board_sorted(d->board, &n);
        move_selection(d, jobs, (int)n, by);
        free(jobs);
    }
}

static void on_keys(void *ctx, short revents)
{
    struct display *d = ctx;
    char bytes[64];
    const ssize_t n = revents & POLLIN ? read(d->tty.in, bytes, sizeof(bytes)) : 0;

    if (n <= 0) { /* hung up; where that is all, SIGHUP ends us */
        d->hung_up = true;
        follow_keys(d);
        return;
    }
    for (struct sv rest = {bytes, (size_t)n}; rest.len;) {
        const enum key key = keys_next(&rest);
        if (key == KEY_UP || key == KEY_DOWN)
            move(d, key == KEY_UP ? -1 : 1);
        else
            d->key(d->ctx, key);
    }
    kube_loop_timer_set(d->loop, &d->frame, d->drawn_ms + DISPLAY_KEY_MS);
}

const struct board_job *display_selected(struct display *d)
{
    move(d, 0);
    return board_find(d->board, d->ns, d->name);
}

void display_text(struct display *d,
                  const char *(*text)(void *text_ctx, int columns, int rows, struct buf *out), void *text_ctx)
{
    d->text = text;
    d->text_ctx = text_ctx;
    d->scroll = 0;
    kube_loop_timer_set(d->loop, &d->frame, d->drawn_ms + DISPLAY_KEY_MS);
}

void display_hide(struct display *d, bool hidden)
{
    tty_alternate(&d->tty, !hidden);
    paint_forget(&d->paint);
    display_changed(d);
}

void display_begin(struct display *d)
{
    tty_init(&d->tty);
    d->paint = (struct paint)PAINT_INIT;
    d->frame = (struct kube_loop_timer){.fire = draw, .ctx = d};
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

/* Without hints on keys: the terminal is the shell's again. */
static void leave_frame(struct display *d)
{
    cleanup_buf struct buf frame = BUF_INIT(TABLE_BYTES_MAX);

    draw_table(d, false, &frame);
    (void)fs_write_all(d->tty.out, buf_str(&frame), frame.len);
}

void display_print(struct display *d)
{
    tty_init(&d->tty);
    measure(d);
    d->table.rows = TABLE_ROWS_MAX; /* a list scrolls */
    leave_frame(d);
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
