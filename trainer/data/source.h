/* source.h - a preset's data source, and the table of its kinds: files in one of several formats, or numbers
 * from a seed. To add a kind, define a struct data_format in a file of formats/ and add a row to
 * DATA_FORMATS. Presets, the fingerprint of a configuration and the manual use the table. pod_data.c calls
 * the functions.
 *
 * Loading takes two steps, so that pod_data.c can allocate shared memory in between: source_open finds the
 * files, reads their headers and computes the layout; source_load reads the data.
 *
 * Ownership: source_open to source_free; the options and the data that they point to are borrowed meanwhile.
 * Errors:    ERR_NOT_FOUND (no such file; the message names the folders), ERR_INVALID (file, field, value and
 *            expectation), ERR_FATAL.
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

    /* The model's input and targets. */
    bool values;                  /* targets are numbers (mean squared error); else labels */
    bool sequence;                /* inputs are sequences of `rows` tokens */
    int32_t rows, cols, channels; /* of an input */

    struct split_spec split;

    /* An input's element becomes (x / scale - mean) / std; one mean and std for all channels, or one each. */
    double scale; /* 0: 255 for bytes, 1 for floats */
    int32_t stats;
    double mean[DATA_CHANNELS_MAX], std[DATA_CHANNELS_MAX];

    /* Set by the format's `accept`; options may change them. Files, below --data unless they begin with '/'.
     * NULL: the four files of MNIST (idx), or no test data. Tokens: patterns (tokens.h), and `test` is the
     * validation set. */
    const char *train, *train_targets, *test, *test_targets;
    bool in_order; /* do not shuffle training samples */
    int dataset;   /* enum dataset_name: the data set of the four files */
};

struct source;

struct data_format {
    const char *name;
    struct {
        const char *keys, *text; /* for the manual */
    } about[2];
    const struct spec_option *options; /* in addition to those of the split */
    bool files;                        /* it reads files below --data */
    bool scaled;                       /* mean, std and scale apply */

    /* Fill the format's fields of the spec. ERR_INVALID: *ret_key is the key to name in the message; NULL:
     * `data` itself. */
    int (*accept)(struct data_spec *d, const char **ret_key, struct err *err);

    /* Find the files and set s->layout; fill *d, and its layout.classes. */
    int (*open)(struct source *s, struct err *err);
    int (*load)(const struct source *s, struct dataset *d, struct err *err);

    /* See source_key; NULL: the format decodes no files. */
    bool (*key)(const struct source *s, int64_t now_ms, struct buf *key);

    /* The number of random words that the data draw from the weights' generator before the weights; NULL:
     * none. */
    uint64_t (*draws)(const struct data_spec *d, const struct data_layout *l);
};

/* All kinds, in the order of the manual: format_NAME, which a file of formats/ defines. */
#define DATA_FORMATS(X)                                                                                      \
    X(idx)                                                                                                   \
    X(synthetic)                                                                                             \
    X(tokens)

#define DATA_FORMAT_DECLARE(name) extern const struct data_format format_##name;
DATA_FORMATS(DATA_FORMAT_DECLARE)
#undef DATA_FORMAT_DECLARE

/* The table and its names, both ended by NULL. */
extern const struct data_format *const data_formats[];
extern const char *const data_format_names[];

struct source_options {
    const struct data_spec *spec;
    const char *dir; /* --data */
    uint64_t seed;   /* synthetic */
};

/* "" is no path; its shape is all zeros. */
struct idx_files {
    char path[DATASET_PARTS][PATH_MAX];
    struct idx_shape shape[DATASET_PARTS];
};

enum { SOURCE_TRAIN, SOURCE_TEST, SOURCE_PARTS };

struct source {
    struct source_options o;
    struct data_layout layout; /* has passed layout_check; `classes` is not known before source_load */
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

/* Write a key that identifies the bytes that source_load would produce: the files' inodes, sizes and times,
 * and how they are read. Equal keys mean equal bytes, if the file system's clock agrees with this machine's
 * to a fraction of a second. False: the source reads no files, stat failed, or a file changed less than
 * SOURCE_SETTLED_S before now_ms (milliseconds since 1970) or after it: a second write could then leave size
 * and times equal. */
bool source_key(const struct source *s, int64_t now_ms, struct buf *key);

/* Fill *d, a view of the source's layout, and its layout.classes. Tokens in *d are borrowed from `s`. */
int source_load(const struct source *s, struct dataset *d, struct err *err) MUST_CHECK;

/* For formats: the path of `name` below the folder `dir`; NULL is "". */
int source_path(const char *dir, const char *name, char out[static PATH_MAX], struct err *err) MUST_CHECK;

/* Add a file to a key; false: it cannot be part of one (see source_key). */
bool source_key_file(const char *path, int64_t now_ms, struct buf *key);

/* Set layout.classes to one more than the largest label. */
void source_count_classes(struct dataset *d);

#endif
