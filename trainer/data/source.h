/* source.h - a preset's data source, and the table of kinds there are: files in one of several formats, or numbers from a seed. A new
 * kind is a file in formats/ that defines a struct data_format, and a row of DATA_FORMATS.
 * Presets, the fingerprint of a configuration and the manual use the table.
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
#include "common/spec_option.h"
#include "trainer/data/dataset.h"
#include "trainer/data/idx.h"
#include "trainer/data/layout.h"
#include "trainer/data/split.h"
#include "trainer/data/tokens.h"

enum { DATA_CHANNELS_MAX = 64, DATA_PATH_BYTES_MAX = 4000, SOURCE_SETTLED_S = 2 };

struct data_format;

/* The `data` of a preset. */
struct data_spec {
    const struct data_format *format;
    int64_t option[SPEC_OPTIONS_MAX]; /* of format->options */
    double number[SPEC_OPTIONS_MAX];
    const char *text[SPEC_OPTIONS_MAX];

    /* What the model takes. */
    bool values;                  /* targets are numbers, for the loss that wants them; else labels */
    bool sequence;                /* the model is one of sequences, of `rows` tokens */
    int32_t rows, cols, channels; /* of its input */

    struct split_spec split;

    /* An input's element becomes (x / scale - mean) / std; one mean and std for all channels, or one each. */
    double scale; /* 0: 255 for bytes, 1 for floats */
    int32_t stats;
    double mean[DATA_CHANNELS_MAX], std[DATA_CHANNELS_MAX];

    /* What the format's accept leaves, and options may change. Files, below --data unless they begin with '/'. NULL: the four of
     * MNIST (idx), or no test data. Tokens: patterns (tokens.h), and `test` validates. */
    const char *train, *train_targets, *test, *test_targets;
    bool in_order; /* training samples are not shuffled */
    int dataset;   /* enum dataset_name: of which data set the four files are */
};

struct source;

struct data_format {
    const char *name;
    struct {
        const char *keys, *text; /* for the manual */
    } about[2];
    const struct spec_option *options; /* besides those of the split */
    bool files;                        /* it reads files below --data */
    bool scaled;                       /* mean, std and scale say what becomes of a number */

    /* Fill what is the format's of the spec. ERR_INVALID: *ret_key is the key to be named, NULL: the data as a whole. */
    int (*accept)(struct data_spec *d, const char **ret_key, struct err *err);

    /* Find the files and set s->layout; fill *d, and its layout.classes. */
    int (*open)(struct source *s, struct err *err);
    int (*load)(const struct source *s, struct dataset *d, struct err *err);

    /* See source_key; NULL: nothing is decoded from files. */
    bool (*key)(const struct source *s, int64_t now_ms, struct buf *key);

    /* How many words of the weights' generator are the data's, before them; NULL: none. */
    uint64_t (*draws)(const struct data_spec *d, const struct data_layout *l);
};

/* The kinds there are, in the order of the manual: format_NAME, which a file of formats/ defines. */
#define DATA_FORMATS(X)                                                                                      \
    X(idx)                                                                                                   \
    X(synthetic)                                                                                             \
    X(tokens)

#define DATA_FORMAT_DECLARE(name) extern const struct data_format format_##name;
DATA_FORMATS(DATA_FORMAT_DECLARE)
#undef DATA_FORMAT_DECLARE

/* The table and the names in it, both ended by NULL. */
extern const struct data_format *const data_formats[];
extern const char *const data_format_names[];

struct source_options {
    const struct data_spec *spec;
    const char *dir; /* --data */
    uint64_t seed;   /* synthetic */
};

/* A path of "" is none, and its shape all zeros. */
struct idx_files {
    char path[DATASET_PARTS][PATH_MAX];
    struct idx_shape shape[DATASET_PARTS];
};

enum { SOURCE_TRAIN, SOURCE_TEST, SOURCE_PARTS };

struct source {
    struct source_options o;
    struct data_layout layout; /* it has passed layout_check; `classes` is not known before source_load */
    struct idx_files idx;
    struct tokens *tokens[SOURCE_PARTS];
};

struct source *source_open(const struct source_options *o, struct err *err);
void source_free(struct source *s);

static inline void source_freep(struct source **s)
{
    source_free(*s);
}
#define cleanup_source __attribute__((cleanup(source_freep)))

/* What decides the bytes that source_load would give beyond the layout: the files, as they are now, and how they are read.
 * Equal keys mean equal bytes, where a file system's clock is that of this machine to a fraction of a second. False: it reads
 * no files, what they are cannot be told, or one was changed less than SOURCE_SETTLED_S before now_ms (milliseconds since 1970)
 * or after it: written once more, it could keep its size and times. */
bool source_key(const struct source *s, int64_t now_ms, struct buf *key);

/* Fill *d, a view of that layout, and its layout.classes. Parts of tokens borrow from `s`. */
int source_load(const struct source *s, struct dataset *d, struct err *err) MUST_CHECK;

/* For formats. `name` below the folder `dir`; NULL is "". */
int source_path(const char *dir, const char *name, char out[static PATH_MAX], struct err *err) MUST_CHECK;

/* Add a file to a key; false: there is none. */
bool source_key_file(const char *path, int64_t now_ms, struct buf *key);

/* One more than the largest label. */
void source_count_classes(struct dataset *d);

#endif
