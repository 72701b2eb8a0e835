/* source_parts.h - declarations shared by source.c and source_tables.c. Internal. */
#ifndef TK_TRAINER_DATA_SOURCE_PARTS_H
#define TK_TRAINER_DATA_SOURCE_PARTS_H

#include "trainer/data/csv.h"
#include "trainer/data/npy.h"
#include "trainer/data/source.h"
#include "trainer/data/tokens.h"

enum { TRAIN, TEST, PARTS };

/* What is known of a part's files; a path of "" is none. */
struct files {
    char x[PATH_MAX];
    char y[PATH_MAX];
    struct csv csv;
    struct npy npy_x, npy_y;
    struct tokens *tokens;
};

struct source {
    struct source_options o;
    struct data_layout layout;
    struct dataset_files idx;
    struct files part[PARTS];
};

/* Headers into s->part and s->layout; then all samples of a part. */
int source_open_csv(struct source *s, struct err *err) MUST_CHECK;
int source_load_csv(const struct source *s, const struct files *f, const struct data_part *to,
                    struct err *err) MUST_CHECK;
int source_open_npy(struct source *s, struct err *err) MUST_CHECK;
int source_load_npy(const struct source *s, const struct files *f, const struct data_part *to,
                    struct err *err) MUST_CHECK;

#endif
