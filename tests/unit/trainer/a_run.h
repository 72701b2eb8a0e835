/* a_run.h - whole runs by one rank or several forked ones, each with a folder of its own: what they print and save. */
#ifndef TK_TESTS_UNIT_TRAINER_A_RUN_H
#define TK_TESTS_UNIT_TRAINER_A_RUN_H

#include "common/buf.h"
#include "launched.h"
#include "small_data.h"
#include "trainer/run/run.h"

struct fixture {
    char dir[SMALL_DATA_DIR_BYTES];
    struct arena arena;
    struct config cfg;
    char *text; /* what the run of one rank printed */
    size_t len;
    struct run_result result;
    struct err err;
    struct stop stop;
};

/* Set-up and tear-down of a test: of a small model on a small data set of our own, or of that model in a folder without data. */
int make(void **state);
int make_of(void **state, const char *model);
int unmake(void **state);
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, unmake)

/* By one rank, without a launcher. */
int go(struct fixture *f);

/* A signal that the next one raises at the first reading of its clock: that is after the set-up began to watch signals. */
extern int raise_next;

/* By `world` ranks; tweak(cfg, rank), unless NULL, changes a rank's configuration. codes[r]: each one's exit code. */
void go_ranks(struct fixture *f, int world, void (*tweak)(struct config *cfg, int rank), int *codes);

/* All of them end with `code`. */
void go_all(struct fixture *f, int world, int code);

/* What a rank of the last run printed, its error included. */
const char *output(struct fixture *f, int rank);

/* A clock and an environment instead of those that go_ranks (both) and go (the clock) have; NULL: none. */
extern int64_t (*a_run_mono_ms)(void *ctx);
extern char *(*a_run_get)(const char *name);

char *path_in(struct fixture *f, const char *name);
void put_file(struct fixture *f, const char *name, const void *bytes, size_t len);

/* The lines in order, each cut to its beginning; `%` stands for a number. */
void expect_lines(const char *text, const char *const *want);

/* A preset's own lines take the place of ours, on every rank; saved every second epoch, and not at the end. */
void own_lines(struct fixture *f);

/* What cfg.save_path holds. */
void read_weights(struct fixture *f, struct buf *out);

/* The weights that one rank leaves after so many steps (of the small model there are 4 in an epoch), and `world` ranks at the end. */
void weights_after(struct fixture *f, int64_t steps, struct buf *out);
void weights_of(struct fixture *f, int world, struct buf *out);

void assert_same(const struct buf *a, const struct buf *b);

#endif
