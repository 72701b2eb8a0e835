/* pages.c - `why` of the selected job as a page of the display, and its logs on the normal screen. */
#include "cli/watch/pages.h"

#include "cli/logs/logs.h"
#include "cli/say.h"
#include "cli/shown.h"

#include <stdio.h>

enum { LOG_TAIL = 200 }; /* lines of each pod */

bool pages_key(struct pages *p, enum key key)
{
    /* As it will be when the key before this one is obeyed. */
    const bool open = p->key == KEY_OTHER ? p->open : p->key != KEY_ESCAPE;

    if (open && (key == KEY_QUIT || p->logs_ended))
        key = KEY_ESCAPE;
    if (open ? key != KEY_ESCAPE && key != KEY_WHY && key != KEY_LOGS
             : (key != KEY_WHY && key != KEY_LOGS) || !display_selected(p->display))
        return open;
    p->key = key;
    p->session->stopped = true;
    kube_loop_stop(p->session->loop);
    return true;
}

/* Laid out once for each size of the screen: frames are drawn whenever any job changes. */
static const char *answer_text(struct pages *p, struct screen_size size)
{
    if (!p->text.len || size.columns != p->size.columns || size.rows != p->size.rows) {
        buf_release(&p->text);
        p->text.max = TABLE_BYTES_MAX;
        p->size = size;
        screen_print(&p->found.facts, size, &p->text);
    }
    return buf_str(&p->text);
}

static const char *why_text(void *ctx, int columns, int rows, struct buf *out)
{
    struct pages *p = ctx;
    const struct board_job *j = board_find(p->display->board, p->ns, p->name);
    char reason[ERR_MSG_BYTES];

    shown_text(reason, sizeof(reason), p->err.msg);
    if (p->err.kind)
        buf_printf(out, NULL, "%s\n", reason);
    else if (!p->read)
        buf_printf(out, NULL, "Reading the status, pods, events and logs of %s\n", p->name);
    else
        buf_puts(out, answer_text(p, (struct screen_size){columns, rows + 1, false}), NULL);
    snprintf(p->hint, sizeof(p->hint), "%s%sq goes back, w reads again, l logs", j ? "" : p->name,
             j ? "" : " was deleted; ");
    return p->hint;
}

static void show_why(struct pages *p)
{
    struct err err = {0};

    pages_release(p);
    p->err = (struct err){0};
    display_text(p->display, why_text, p);
    const bool failed = collect(&p->found, p->session, p->name, &err) < 0;
    if (p->key != KEY_OTHER || *p->over)
        return;
    if (failed)
        p->err = err;
    p->read = !failed;
    display_changed(p->display);
}

/* Until a key stops the loop, or the job has ended and a key is pressed. */
static void show_logs(struct pages *p)
{
    struct err err = {0};

    display_hide(p->display, true);
    printf("----- logs of %s: q goes back -----\n", p->name);
    const bool failed = logs_print(p->session, p->name, LOG_TAIL, &err) < 0;
    if (p->key == KEY_OTHER && !*p->over) {
        if (failed)
            say("kubectl ptj logs", "%s", err.msg);
        puts("----- no more logs: any key goes back -----");
        fflush(stdout);
        p->logs_ended = true;
        if (kube_loop_run(p->session->loop, &err) < 0)
            p->key = KEY_ESCAPE;
        p->logs_ended = false;
    }
    display_hide(p->display, false);
}

void pages_open(struct pages *p)
{
    const enum key key = p->key;
    const char *ns = p->session->ns;
    const struct board_job *j = p->open ? NULL : display_selected(p->display);

    p->key = KEY_OTHER;
    p->session->stopped = false;
    if (key == KEY_ESCAPE || (!p->open && !j)) {
        p->open = false;
        display_text(p->display, NULL, NULL);
        return;
    }
    if (j) {
        snprintf(p->ns, sizeof(p->ns), "%s", j->ns);
        snprintf(p->name, sizeof(p->name), "%s", j->name);
    }
    p->open = true;
    p->session->ns = p->ns; /* with --all-namespaces it is another one */
    if (key == KEY_WHY)
        show_why(p);
    else
        show_logs(p);
    p->session->ns = ns;
}

void pages_release(struct pages *p)
{
    collect_release(&p->found);
    p->found = (struct collected){0};
    buf_release(&p->text);
    p->read = false;
}
