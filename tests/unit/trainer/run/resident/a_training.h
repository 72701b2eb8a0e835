/* a_training.h - what a training holds, on an emulated GPU or on the CPU, and its steps. */
#ifndef TK_TESTS_UNIT_TRAINER_RUN_RESIDENT_A_TRAINING_H
#define TK_TESTS_UNIT_TRAINER_RUN_RESIDENT_A_TRAINING_H

#include "trainer/data/tokens.h"
#include "trainer/run/evaluate.h"
#include "trainer/run/resident/resident.h"
#include "trainer/run/train.h"

enum { TIMEOUT_MS = 600000 };

struct training {
    struct collectives *comm;
    struct kctx *ctx;
    struct tokens *tokens; /* NULL: samples are no windows */
    struct model_spec spec;
    struct pipeline pipeline;
    struct optim optim;
    struct train train;
};

/* One of t->spec, on an emulated GPU or on the CPU. *o: its batch, and what is unlike the others; *p: its feed, order of
 * samples, loss and buckets. */
void begin_training(struct training *t, bool device, struct pipeline_options o,
                    const struct optimizer_spec *optimizer, struct train_parts p);
void close_training(struct training *t);

/* Two evaluate the same samples: losses differ by so small a share, accuracies not at all. */
void check_evaluations(struct training *device, struct training *cpu, int64_t items, double far);

/* Each piece of memory in turn is not to be had from that function of CUDA's, and nothing stays behind. Returns how many there are. */
int check_memory(struct training *t, const char *function);

void run_step(struct training *t, int64_t step, double lr, bool exact, struct train_result *r);

/* Two that are alike come to the same weights, though one waits for every step and the other has as many in flight as there may
 * be. The rate of a step goes down. Closes both. */
void check_steps_in_flight(struct training *hurried, struct training *patient, int epochs, int64_t steps,
                           double lr);

/* Squares of what is wrong in a, as a share of b's. */
double wrong_share(const float *a, const float *b, size_t n);

#endif
