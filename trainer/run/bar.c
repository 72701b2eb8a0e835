/* bar.c - draw the progress bar on a terminal. */
#include "trainer/run/bar.h"

#include "common/cleanup.h"

#include <math.h>
#include <string.h>
#include <sys/ioctl.h>

enum { DRAW_MS = 200, COLUMNS = 80, CELLS_MIN = 6, CELLS_MAX = 30, WORD_BYTES = 48 };

/* In their order on the line. */
enum word { PERCENT, CELLS, EPOCH, STEP, LOSS, RATE, LEFT, WORDS };

static void put_rate(char *out, double rate)
{
    if (rate < 1e4)
        snprintf(out, WORD_BYTES, "%.0f samples/s", rate);
    else if (rate < 1e6)
        snprintf(out, WORD_BYTES, "%.0fk samples/s", rate / 1e3);
    else
        snprintf(out, WORD_BYTES, "%.1fM samples/s", rate / 1e6);
}

static void put_left(char *out, double seconds)
{
    const double most = 999.0 * 3600;
    const long long s = (long long)(seconds < most ? seconds : most);

    if (s < 3600)
        snprintf(out, WORD_BYTES, "%lld:%02lld left", s / 60, s % 60);
    else
        snprintf(out, WORD_BYTES, "%lld:%02lld:%02lld left", s / 3600, s / 60 % 60, s % 60);
}

static void put_cells(char *out, double part, int cells)
{
    const int full = (int)(part * cells);

    out[0] = '[';
    memset(out + 1, '#', (size_t)full);
    memset(out + 1 + full, '.', (size_t)(cells - full));
    memcpy(out + 1 + cells, "]", 2);
}

/* Columns of a word with the spaces before it: one around the cells, two elsewhere, none at the begin. */
static int width(enum word w, const char *text)
{
    return (int)strlen(text) + (w == PERCENT ? 0 : w == CELLS || w == EPOCH ? 1 : 2);
}

void bar_render(const struct pace_view *v, int columns, char out[static BAR_BYTES])
{
    static const enum word wanted[] = {PERCENT, LEFT, LOSS, CELLS, RATE, EPOCH, STEP};
    const double done = v->total > 0 ? (double)v->done / (double)v->total : 0, part = done > 1 ? 1 : done;
    char text[WORDS][WORD_BYTES];
    bool fits[WORDS] = {false};
    int room = (columns < BAR_BYTES ? columns : BAR_BYTES) - 1;
    size_t len = 0;

    snprintf(text[PERCENT], WORD_BYTES, "%3d%%", (int)(part * 100));
    put_cells(text[CELLS], part, CELLS_MIN);
    snprintf(text[EPOCH], WORD_BYTES, "epoch %lld/%lld", (long long)v->epoch, (long long)v->epochs);
    snprintf(text[STEP], WORD_BYTES, "step %lld/%lld", (long long)v->step, (long long)v->steps);
    snprintf(text[LOSS], WORD_BYTES, v->loss < 1e6 ? "loss %.4f" : "loss %.3e", v->loss);
    put_rate(text[RATE], v->samples_per_s);
    put_left(text[LEFT], v->left_s);
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        const int need = width(wanted[i], text[wanted[i]]);
        if (need > room)
            break;
        fits[wanted[i]] = true;
        room -= need;
    }
    if (fits[CELLS])
        put_cells(text[CELLS], part, CELLS_MIN + room < CELLS_MAX ? CELLS_MIN + room : CELLS_MAX);
    out[0] = '\0';
    for (int w = 0; w < WORDS; w++)
        if (fits[w])
            len += (size_t)snprintf(out + len, BAR_BYTES - len, "%*s", width((enum word)w, text[w]), text[w]);
}

static int columns_of(FILE *out)
{
    struct winsize size;

    return ioctl(fileno(out), TIOCGWINSZ, &size) || !size.ws_col ? COLUMNS : size.ws_col;
}

static void draw(struct bar *b, const struct pace_view *v)
{
    char line[BAR_BYTES];

    bar_render(v, columns_of(b->out), line);
    fprintf(b->out, "\r\033[K%s", line);
    fflush(b->out);
    b->shown = true;
}

void bar_step(struct bar *b, int64_t now_ms, const struct pace_view *v)
{
    if (!b->out || isnan(v->left_s) || now_ms - b->drawn_ms < DRAW_MS)
        return;
    draw(b, v);
    b->drawn_ms = now_ms;
}

void bar_hide(struct bar *b)
{
    if (b->shown) {
        fputs("\r\033[K", b->out);
        fflush(b->out);
    }
    b->shown = false;
}
