/* a_resume.h - runs of a small model, each rank a process. A signal may end them at any moment; the next run continues from
 * their checkpoint. */
#ifndef TK_TESTS_UNIT_TRAINER_STATE_A_RESUME_H
#define TK_TESTS_UNIT_TRAINER_STATE_A_RESUME_H

#include "../a_run.h"

enum { RANKS = 3 };

extern unsigned resume_random; /* of the test's seed */

int make_resume(void **state);
#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_resume, unmake)

/* The small model with another optimiser, and nothing else asked. */
void configure(struct fixture *f, const char *optimizer);

/* The folder of the checkpoints of a run with this test's own id. */
char *own_dir(struct fixture *f);

struct plan {
    int world;
    const char *job, *launch, *restarts, *errors; /* of the environment; errors: TORCHELASTIC_ERROR_FILE */
    bool rank_0_saves;                            /* the others have no --save_steps */
    int signal, rank, calls; /* `signal` to `rank` at its `calls`-th reading of the clock; 0: none */
};

/* The exit code of rank 0, or 128 + the signal that killed it; the others' are in codes. */
int go_by(struct fixture *f, struct plan p, int codes[static RANKS]);

/* Whether rank 0 has printed that. */
bool says(struct fixture *f, const char *text);

/* The weights of a run that was left alone; behind it nothing is left of it. */
void undisturbed(struct fixture *f, int world, struct buf *weights);
void expect_weights(struct fixture *f, const struct buf *want);

void read_file(const char *path, struct buf *out);

/* Checkpoints and weights. */
void forget(struct fixture *f);

#endif
