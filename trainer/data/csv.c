/* csv.c - read a CSV file: split it into lines and cells, and convert the cells to float32. */
#include "trainer/data/csv.h"

#include "common/sv.h"
#include "trainer/data/gzfile.h"
#include "trainer/data/layout.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const char *path;
    struct gzfile *g;
    int64_t line;    /* of the last one given */
    size_t from, to; /* bytes of `text` that wait */
    bool ended;
    char text[CSV_LINE_MAX + 1];
};

static void reader_free(struct reader **r)
{
    if (!*r)
        return;
    gzfile_free((*r)->g);
    free(*r);
}
#define cleanup_reader __attribute__((cleanup(reader_free)))

static struct reader *reader_open(const char *path, struct err *err)
{
    cleanup_reader struct reader *r = calloc(1, sizeof(*r));

    if (!r) {
        err_memory(err, "no memory to read %s", path);
        return NULL;
    }
    r->path = path;
    r->g = gzfile_open(path, err);
    return r->g ? TAKE(r) : NULL;
}

/* More bytes behind those that wait. */
static int fill(struct reader *r, struct err *err)
{
    size_t got;

    memmove(r->text, r->text + r->from, r->to - r->from);
    r->to -= r->from;
    r->from = 0;
    if (r->to == CSV_LINE_MAX)
        return err_set(err, ERR_INVALID, "%s:%" PRId64 ": longer than %d bytes", r->path, r->line + 1,
                       CSV_LINE_MAX);
    if (gzfile_read(r->g, r->text + r->to, CSV_LINE_MAX - r->to, &got, err))
        return -1;
    r->to += got;
    r->ended = r->to < CSV_LINE_MAX;
    return 0;
}

/* The next line that is not empty. 1: *ret is it; 0: the end. It is valid until the next call. */
static int next_line(struct reader *r, struct sv *ret, struct err *err)
{
    for (;;) {
        const char *end = memchr(r->text + r->from, '\n', r->to - r->from);
        if (!end && !r->ended) {
            if (fill(r, err))
                return -1;
            continue;
        }
        if (!end && r->from == r->to)
            return 0;
        size_t len = end ? (size_t)(end - r->text) - r->from : r->to - r->from;
        struct sv line = sv_trim((struct sv){r->text + r->from, len});
        r->from += len + (end != NULL);
        r->line++;
        if (!line.len)
            continue;
        *ret = line;
        return 1;
    }
}

static int skip_header(struct reader *r, bool header, struct err *err)
{
    struct sv line;

    return header && next_line(r, &line, err) < 0 ? -1 : 0;
}

static int32_t columns_of(struct sv line)
{
    int32_t n = 1;

    for (size_t i = 0; i < line.len; i++)
        n += line.p[i] == ',';
    return n;
}

int csv_probe(const char *path, bool header, struct csv *ret, struct err *err)
{
    cleanup_reader struct reader *r = reader_open(path, err);
    struct csv c = {0};
    struct sv line;
    int more;

    if (!r || skip_header(r, header, err))
        return -1;
    while ((more = next_line(r, &line, err)) > 0) {
        int32_t columns = columns_of(line);
        if (!c.rows)
            c.columns = columns;
        if (columns != c.columns || columns < 2 || columns > CSV_COLUMNS_MAX)
            return err_set(err, ERR_INVALID, "%s:%" PRId64 ": %d columns, expected %d%s", path, r->line,
                           columns, c.rows ? c.columns : 2,
                           c.rows ? " as in the line before" : " or more, and at most 65536");
        if (c.rows++ == INT32_MAX)
            return err_set(err, ERR_INVALID, "%s: rows: more than %d", path, INT32_MAX);
    }
    if (more < 0)
        return -1;
    if (!c.rows)
        return err_set(err, ERR_INVALID, "%s: rows: 0, expected at least one", path);
    *ret = c;
    return 0;
}

static int bad_cell(const struct reader *r, int32_t column, struct sv cell, const char *what, struct err *err)
{
    return err_set(err, ERR_INVALID, "%s:%" PRId64 ": column %d: \"%.*s\", expected %s", r->path, r->line,
                   column, cell.len < 40 ? (int)cell.len : 40, cell.p, what);
}

static int load_cell(const struct reader *r, const struct csv *c, const struct csv_target *to, int64_t row,
                     int32_t column, struct sv cell, struct err *err)
{
    int32_t place = column - to->first;
    bool target = place >= 0 && place < to->width;
    double v;

    if (!sv_f64(cell, &v) || !isfinite((float)v))
        return bad_cell(r, column, cell, "a finite number", err);
    if (target && to->labels) {
        if (!(v >= 0 && v <= LAYOUT_LABEL_MAX && v == (double)(int32_t)v))
            return bad_cell(r, column, cell, "a label: a whole number 0..16777215", err);
        to->labels[row] = (int32_t)v;
    } else if (target) {
        to->values[row * to->width + place] = (float)v;
    } else {
        int32_t at = column < to->first ? column : column - to->width;
        to->x[row * (c->columns - to->width) + at] = (float)v;
    }
    return 0;
}

static int load_row(const struct reader *r, const struct csv *c, const struct csv_target *to, int64_t row,
                    struct sv line, struct err *err)
{
    struct sv cell;
    int32_t column = 0;

    if (row == c->rows || columns_of(line) != c->columns)
        return err_set(err, ERR_INVALID, "%s: changed while it was read", r->path);
    for (; column < c->columns && sv_next(&line, ',', &cell); column++)
        if (load_cell(r, c, to, row, column, sv_trim(cell), err))
            return -1;
    return 0;
}

int csv_load(const char *path, bool header, const struct csv *c, const struct csv_target *to, struct err *err)
{
    cleanup_reader struct reader *r = reader_open(path, err);
    struct sv line;
    int64_t row = 0;
    int more;

    if (!r || skip_header(r, header, err))
        return -1;
    for (; (more = next_line(r, &line, err)) > 0; row++)
        if (load_row(r, c, to, row, line, err))
            return -1;
    if (more < 0)
        return -1;
    return row == c->rows ? 0 : err_set(err, ERR_INVALID, "%s: changed while it was read", path);
}
