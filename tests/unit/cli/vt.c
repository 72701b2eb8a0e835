/* vt.c - a small terminal for tests. */
#include "vt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void vt_init(struct vt *v, int columns, int rows)
{
    *v = (struct vt){.rows = rows, .columns = columns, .cursor = true, .wraps = true};
}

void vt_resize(struct vt *v, int columns, int rows)
{
    v->columns = columns;
    v->rows = rows;
    for (int p = 0; p < 2; p++) {
        struct vt_page *page = &v->pages[p];
        page->row = page->row < rows ? page->row : rows - 1;
        page->column = page->column < columns ? page->column : columns - 1;
    }
    v->at_margin = false;
}

static struct vt_page *present(struct vt *v)
{
    return &v->pages[v->page];
}

static void erase(struct vt *v, int row, int from)
{
    memset(present(v)->cells[row][from], 0, (size_t)(VT_COLUMNS - from) * VT_CELL);
}

static void scroll(struct vt *v)
{
    struct vt_page *p = present(v);

    memmove(p->cells[0], p->cells[1], sizeof(p->cells[0]) * (VT_ROWS - 1));
    erase(v, v->rows - 1, 0);
}

static void new_line(struct vt *v)
{
    struct vt_page *p = present(v);

    v->at_margin = false;
    if (p->row == v->rows - 1)
        scroll(v);
    else
        p->row++;
}

static void put(struct vt *v, const char *character)
{
    struct vt_page *p = present(v);

    if (v->at_margin && v->wraps) {
        new_line(v);
        p->column = 0;
    }
    snprintf(p->cells[p->row][p->column], VT_CELL, "%s", character);
    if (p->column == v->columns - 1)
        v->at_margin = true;
    else
        p->column++;
}

static void set_mode(struct vt *v, int mode, bool on)
{
    switch (mode) {
    case 7:
        v->wraps = on;
        break;
    case 25:
        v->cursor = on;
        break;
    case 1049:
        if (on && !v->page)
            memset(&v->pages[1], 0, sizeof(v->pages[1]));
        v->page = on;
        v->at_margin = false;
        break;
    case 2026:
        v->updates += v->in_update && !on;
        v->in_update = on;
        break;
    default:
        snprintf(v->unknown, sizeof(v->unknown), "mode %d", mode);
    }
}

static void erase_below(struct vt *v)
{
    struct vt_page *p = present(v);

    v->cleared += p->row == 0 && p->column == 0;
    erase(v, p->row, p->column);
    for (int r = p->row + 1; r < VT_ROWS; r++)
        erase(v, r, 0);
}

/* CSI with its parameters, without ESC [. */
static void control(struct vt *v, const char *text, char final)
{
    struct vt_page *p = present(v);
    int a = 1, b = 1;

    if (final == 'm')
        return;
    if (text[0] == '?' && (final == 'h' || final == 'l')) {
        set_mode(v, atoi(text + 1), final == 'h');
    } else if (final == 'H') {
        (void)sscanf(text, "%d;%d", &a, &b);
        p->row = (a < v->rows ? a : v->rows) - 1;
        p->column = (b < v->columns ? b : v->columns) - 1;
        v->at_margin = false;
    } else if (final == 'K' && (!text[0] || text[0] == 'K')) {
        erase(v, p->row, p->column);
    } else if (final == 'J' && text[0] == 'J') {
        erase_below(v);
    } else {
        snprintf(v->unknown, sizeof(v->unknown), "CSI %s", text);
    }
}

static size_t character_len(unsigned char first)
{
    return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* Whether what is pending is complete; it was carried out then. */
static bool take(struct vt *v)
{
    const char *text = v->pending;
    const char last = text[v->n_pending - 1];

    if (text[0] == '\x1b') {
        if (v->n_pending < 3 || last < 0x40)
            return v->n_pending == 2 && last != '[' &&
                   snprintf(v->unknown, sizeof(v->unknown), "ESC %c", last);
        control(v, text + 2, last);
        return true;
    }
    if (text[0] == '\n')
        new_line(v);
    else if (text[0] == '\r')
        present(v)->column = 0, v->at_margin = false;
    else if ((unsigned char)text[0] < 0x20)
        snprintf(v->unknown, sizeof(v->unknown), "byte %d", text[0]);
    else if (v->n_pending < character_len((unsigned char)text[0]))
        return false;
    else
        put(v, text);
    return true;
}

void vt_feed(struct vt *v, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        v->pending[v->n_pending++] = bytes[i];
        v->pending[v->n_pending] = '\0';
        if (take(v) || v->n_pending == sizeof(v->pending) - 1)
            v->n_pending = 0;
    }
}

char *vt_text(const struct vt *v)
{
    const struct vt_page *p = &v->pages[v->page];
    char *text = malloc((size_t)v->rows * ((size_t)v->columns * VT_CELL + 1) + 1), *to = text, *end = text;

    if (!text)
        abort();
    for (int r = 0; r < v->rows; r++) {
        char *line = to;
        for (int c = 0; c < v->columns; c++) {
            const char *cell = p->cells[r][c];
            const size_t n = cell[0] ? strlen(cell) : 1;
            memcpy(to, cell[0] ? cell : " ", n);
            to += n;
        }
        while (to > line && to[-1] == ' ')
            to--;
        end = to > line ? to : end;
        *to++ = '\n';
    }
    *end = '\0';
    return text;
}
