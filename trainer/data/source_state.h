/* source_state.h - an open data source, as its format works on it. */
#ifndef TK_TRAINER_DATA_SOURCE_STATE_H
#define TK_TRAINER_DATA_SOURCE_STATE_H

#include "trainer/data/idx.h"
#include "trainer/data/source.h"
#include "trainer/data/tokens.h"

enum { SOURCE_TRAIN, SOURCE_TEST, SOURCE_PARTS };

/* A path of "" is none, and its shape all zeros. */
struct idx_files {
    char path[DATASET_PARTS][PATH_MAX];
    struct idx_shape shape[DATASET_PARTS];
};

struct source {
    struct source_options o;
    struct data_layout layout;
    struct idx_files idx;
    struct tokens *tokens[SOURCE_PARTS];
};

/* `name` below the folder `dir`; NULL is "". */
int source_path(const char *dir, const char *name, char out[static PATH_MAX], struct err *err) MUST_CHECK;

/* Add a file to a key (source_key); false: there is none. */
bool source_key_file(const char *path, int64_t now_ms, struct buf *key);

/* One more than the largest label. */
void source_count_classes(struct dataset *d);

#endif
