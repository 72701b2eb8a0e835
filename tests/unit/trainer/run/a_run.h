/* a_run.h - whole runs of a small model on a small data set of our own, and what they print. */
#ifndef TK_TESTS_UNIT_TRAINER_RUN_A_RUN_H
#define TK_TESTS_UNIT_TRAINER_RUN_A_RUN_H

#include "common/buf.h"
#include "trainer/run/run.h"
#include "trainer/small_data.h"

struct fixture {
    char dir[SMALL_DATA_DIR_BYTES];
    struct arena arena;
    struct config cfg;
    char *text; /* what the run printed */
    size_t len;
    struct run_result result;
    struct err err;
    struct stop stop;
};

/* Set-up and tear-down of a test. */
int make(void **state);
int unmake(void **state);
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, unmake)

/* By one rank. */
int go(struct fixture *f);

/* A signal that the next one raises at the first reading of its clock: that is after the set-up began to watch signals. */
extern int raise_next;

char *path_in(struct fixture *f, const char *name);

/* The lines in order, each cut to its beginning; `%` stands for a number. */
void expect_lines(const char *text, const char *const *want);

/* A preset's own lines take the place of ours, on every rank; saved every second epoch, and not at the end. */
void own_lines(struct fixture *f);

/* The weights after so many steps, of 4 in an epoch. */
void weights_after(struct fixture *f, int64_t steps, struct buf *out);

#endif
