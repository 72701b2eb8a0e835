/* describe.c - write a run's model file, options, graph, weights and filters to TensorBoard. */
#include "trainer/run/describe.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SHEET_COLS = 8, FILTERS_MAX = 64, FILTER_SIDE_MAX = 64, SHEET_SIDE = 256 };

static const char *const OPTIMIZERS[] = {
    [OPTIMIZER_ADAM] = "adam", [OPTIMIZER_SGD] = "sgd", [OPTIMIZER_ADAMW] = "adamw"};

/* Markdown shows a block of code when every line is indented. */
static int put_source(struct events *e, const struct config *cfg, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(EVENT_VALUE_BYTES / 2);

    for (const char *p = cfg->source; *p;) {
        size_t n = strcspn(p, "\n");
        if (buf_puts(&text, "    ", err) || buf_append(&text, p, n, err) || buf_puts(&text, "\n", err))
            return -1;
        p += n + (p[n] == '\n');
    }
    return events_text(e, "model", 0, buf_str(&text), err);
}

static int put_graph(struct events *e, const struct model_spec *m, struct err *err)
{
    cleanup_arena struct arena a = {0};
    struct event_node node[MODEL_LAYERS_MAX + 2];
    size_t n = 0;

    node[n++] = (struct event_node){.name = "input", .op = "Placeholder"};
    for (int i = 0; i < m->layers; i++, n++) {
        const struct layer_spec *l = &m->layer[i];
        node[n] = (struct event_node){
            .name = l->name[0] ? l->name : arena_printf(&a, "%s_%d", l->ops->type, i),
            .op = l->ops->type,
            .input = node[n - 1].name,
        };
    }
    node[n] = (struct event_node){.name = "loss", .op = "loss", .input = node[n - 1].name};
    return events_graph(e, node, n + 1, err);
}

int describe_run(struct events *e, const struct config *cfg, const char *group, int world, struct err *err)
{
    const struct event_hparam h[] = {
        {"batch_size", NULL, (double)cfg->batch_size},
        {"epochs", NULL, (double)cfg->epochs},
        {"lr", NULL, cfg->optimizer.lr},
        {"model", cfg->name, 0},
        {"optimizer", OPTIMIZERS[cfg->optimizer.type], 0},
        {"ranks", NULL, world},
        {"seed", NULL, (double)cfg->seed},
        {"weight_decay", NULL, cfg->optimizer.weight_decay},
    };

    if (!e)
        return 0;
    return put_source(e, cfg, err) || put_graph(e, &cfg->model, err) ||
                   events_hparams(e, group, h, ARRAY_LEN(h), err)
               ? -1
               : 0;
}

int describe_weights(struct events *e, struct model *m, int64_t step, struct err *err)
{
    int rows;
    const struct param_row *row = model_params(m, &rows);
    char tag[EVENTS_TAG_BYTES];

    for (int i = 0; e && i < rows; i++) {
        snprintf(tag, sizeof(tag), "weights/%s", row[i].name);
        if (events_histogram(e, tag, step, model_values(m) + row[i].offset, row[i].len, err))
            return -1;
    }
    return 0;
}

/* `n` pictures of rows x cols, each `stride` floats behind the last. */
struct sheet {
    const float *from;
    int n, rows, cols;
    size_t stride;
};

static bool sheet_of(const struct param_row *row, const float *values, const struct shape *input,
                     struct sheet *ret)
{
    *ret = (struct sheet){.from = values + row->offset,
                          .n = (int)(row->dim[0] < FILTERS_MAX ? row->dim[0] : FILTERS_MAX)};
    if (row->dims == 4) { /* (out, in, rows, cols) */
        ret->rows = (int)(row->dim[2] < 4096 ? row->dim[2] : 4096);
        ret->cols = (int)(row->dim[3] < 4096 ? row->dim[3] : 4096);

    } else if (row->dims == 2 && input->rows > 1 && row->dim[1] == (int64_t)shape_len(input)) {
        ret->rows = input->rows; /* flatten gives torch's order: channel by channel */
        ret->cols = input->cols;

    } else {
        return false;
    }
    ret->stride = row->len / (size_t)row->dim[0];
    return ret->rows <= FILTER_SIDE_MAX && ret->cols <= FILTER_SIDE_MAX;
}

/* Weights from the least to the greatest become black to white. */
static void draw(const struct sheet *s, int zoom, int width, uint8_t *pixels)
{
    float low = INFINITY;
    float high = -INFINITY;
    size_t area = (size_t)s->rows * (size_t)s->cols;

    for (int f = 0; f < s->n; f++) {
        for (size_t i = 0; i < area; i++) {
            low = fminf(low, s->from[(size_t)f * s->stride + i]);
            high = fmaxf(high, s->from[(size_t)f * s->stride + i]);
        }
    }
    float scale = high > low && isfinite(high - low) ? 255.0f / (high - low) : 0;
    for (int f = 0; f < s->n; f++) {
        int top = f / SHEET_COLS * (s->rows * zoom + 1);
        int left = f % SHEET_COLS * (s->cols * zoom + 1);
        for (int y = 0; y < s->rows * zoom; y++) {
            for (int x = 0; x < s->cols * zoom; x++) {
                size_t i = (size_t)(y / zoom * s->cols + x / zoom);
                float grey = scale * (s->from[(size_t)f * s->stride + i] - low);
                pixels[(size_t)(top + y) * (size_t)width + (size_t)(left + x)] =
                    grey >= 0 && grey <= 255 ? (uint8_t)grey : 0;
            }
        }
    }
}

int describe_filters(struct events *e, struct model *m, const struct shape *input, int64_t step,
                     struct err *err)
{
    int rows;
    const struct param_row *row = model_params(m, &rows);
    struct sheet s;
    char tag[EVENTS_TAG_BYTES];

    if (!e || !sheet_of(row, model_values(m), input, &s))
        return 0;
    int across = s.n < SHEET_COLS ? s.n : SHEET_COLS;
    int down = (s.n + SHEET_COLS - 1) / SHEET_COLS;
    int zoom = SHEET_SIDE / SHEET_COLS / (s.cols > s.rows ? s.cols : s.rows);
    zoom = zoom > 1 ? zoom : 1;
    int width = across * (s.cols * zoom + 1);
    int height = down * (s.rows * zoom + 1);
    cleanup_free uint8_t *pixels = calloc((size_t)width * (size_t)height, 1);
    if (!pixels)
        return err_memory(err, "no memory for an image of %dx%d", width, height);
    draw(&s, zoom, width, pixels);
    snprintf(tag, sizeof(tag), "filters/%s", row->name);
    return events_image(e, tag, step, pixels, width, height, err);
}
