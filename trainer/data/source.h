/* source.h - a preset's data source: files in one of several formats, or data generated from a seed.
 *
 * In two steps, so that memory for all ranks of a pod can be made in between: source_open (files found, their headers
 * read, the layout known), source_load (the bytes).
 *
 * Ownership: source_open makes, source_free frees; the options and what they point to are borrowed meanwhile.
 * Errors:    ERR_NOT_FOUND (no such file: the message says where it was looked for), ERR_INVALID (file, field, value and
 *            what was expected), ERR_FATAL.
 */
#ifndef TK_TRAINER_DATA_SOURCE_H
#define TK_TRAINER_DATA_SOURCE_H

#include "common/buf.h"
#include "trainer/data/dataset.h"
#include "trainer/data/layout.h"
#include "trainer/data/split.h"
#include "trainer/data/synthetic.h"

enum source_format { SOURCE_IDX, SOURCE_SYNTHETIC, SOURCE_TOKENS };
enum { DATA_CHANNELS_MAX = 64, SOURCE_SETTLED_S = 2 };

/* The `data` of a preset. */
struct data_spec {
    enum source_format format;
    bool values; /* targets are numbers, for the loss that wants them; else labels */
    /* Files, below --data unless they begin with '/'. NULL: the four of MNIST (idx), or no test data.
     * Tokens: patterns (tokens.h), and `test` validates. */
    const char *train, *train_targets, *test, *test_targets;

    int32_t rows, cols, channels; /* synthetic, tokens: the model's input */
    bool in_order;                /* training samples are not shuffled */

    /* synthetic */
    int64_t items;
    struct synthetic synthetic;
    bool before_weights; /* drawn from the generator of the weights, before them; else from one of its own */

    struct split_spec split;

    /* An input's element becomes (x / scale - mean) / std; one mean and std for all channels, or one each. */
    double scale; /* 0: 255 for bytes, 1 for floats */
    int32_t stats;
    double mean[DATA_CHANNELS_MAX], std[DATA_CHANNELS_MAX];
};

struct source_options {
    const struct data_spec *spec;
    const char *dir;        /* --data */
    enum dataset_name name; /* idx without files */
    uint64_t seed;          /* synthetic */
};

struct source;

struct source *source_open(const struct source_options *o, struct err *err);
void source_free(struct source *s);

static inline void source_freep(struct source **s)
{
    source_free(*s);
}
#define cleanup_source __attribute__((cleanup(source_freep)))

/* It has passed layout_check; `classes` is not known yet. */
const struct data_layout *source_layout(const struct source *s);

/* What decides the bytes that source_load would give beyond the layout: the files, as they are now, and how they are read.
 * Equal keys mean equal bytes, where a file system's clock is that of this machine to a fraction of a second. False: it reads
 * no files, what they are cannot be told, or one was changed less than SOURCE_SETTLED_S before now_ms (milliseconds since 1970)
 * or after it: written once more, it could keep its size and times. */
bool source_key(const struct source *s, int64_t now_ms, struct buf *key);

/* Fill *d, a view of that layout, and its layout.classes. Parts of tokens borrow from `s`. */
int source_load(const struct source *s, struct dataset *d, struct err *err) MUST_CHECK;

#endif
