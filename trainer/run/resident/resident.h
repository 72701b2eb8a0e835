/* resident.h - training on a GPU: data, weights and moments stay in its memory. A step is recorded once as a
 * CUDA graph and then launched for each step. train.c and evaluate.c call it.
 *
 * Per step the host sends one struct step_order and receives one struct step_record, both in memory that host
 * and device share. The host reads a record RESIDENT_LAG steps late, so that the device never waits for it. A
 * caller that needs a step's loss at once sets train.exact and waits.
 *
 * With one micro-batch per step, the graph is the whole step. With several, the graph is one micro-batch,
 * launched for each: the device adds the gradients in the same order as the CPU, and exchanges, clips and
 * applies them once. The host prepares the tokens of each step.
 *
 * With one rank, and with NCCL, a step is one graph that includes the all-reduce. The flags follow the
 * gradient in memory, so all ranks get them after the same step, RESIDENT_LAG steps late. A large gradient is
 * reduced in buckets, in parallel with the backward pass (--bucket_mb). With gloo, a step is two graphs
 * around the host's all_reduce, and the host waits for each step.
 *
 * A model in stages with NCCL has one graph per step for any number of micro-batches: it includes the
 * transfers and the sum of loss and flags. Without NCCL the first half of a step is not recorded, because the
 * host transfers the activations.
 *
 * Ownership: resident_open to resident_close; parts are borrowed meanwhile. The model moves to the device and
 *            stays there.
 * Order:     the first step of a batch size runs without recording, the second is recorded: CUDA and cuBLAS
 *            cannot load code while a graph is recorded. The first step waits for earlier steps under their
 *            deadline, and for each of its exchanges, because loading code may wait for the device without a
 *            deadline.
 * Errors:    ERR_FATAL (memory; the device), and those of the collectives: with NCCL, all waits for the
 *            device have their deadline. resident_close waits at most 0.5 s to find out whether the device is
 *            lost (collectives/device.h), and then frees no device memory: check device_comm->lost after it.
 */
#ifndef TK_TRAINER_RUN_RESIDENT_RESIDENT_H
#define TK_TRAINER_RUN_RESIDENT_RESIDENT_H

#include "kernels/queued.h"
#include "trainer/run/train_parts.h"

enum { RESIDENT_RING = 16, RESIDENT_LAG = 8, RESIDENT_GRAPHS = 8 };

struct resident;

/* The device memory, in bytes, for training a model of sequences with micro-batches of `rows` samples and an
 * optimizer with two moments. It includes the model, but not the order of the samples (4 bytes each) and the
 * context. */
int resident_needs(const struct model_spec *spec, int rows, size_t *ret, struct err *err) MUST_CHECK;

struct resident *resident_open(const struct train_parts *p, struct err *err) MUST_CHECK;
void resident_close(struct resident *r);

/* Set the positions that this rank takes from now on: the rest of an epoch's order, by the sampler. */
int resident_order(struct resident *r, const struct sampler *s, const uint32_t *order,
                   struct err *err) MUST_CHECK;

/* As train_step. grad: (parameters + 1), for sums over ranks by the host. */
int resident_step(struct resident *r, int64_t step, double lr, uint32_t flags, bool exact, float *grad,
                  struct train_result *ret, struct err *err) MUST_CHECK;

/* The sums of losses since resident_order: this rank's, and of the means over all ranks. Waits for the
 * device. */
int resident_sums(struct resident *r, double *own, double *mean, struct err *err) MUST_CHECK;

/* Copy weights, buffers and moments to the device, and back (train_pull). pull waits. ERR_FATAL: the loss of
 * a step whose record was not read yet is not finite, so the weights do not match the number of launched
 * steps. */
void resident_push(struct resident *r);
int resident_pull(struct resident *r, enum train_reads reads, struct err *err) MUST_CHECK;

/* Evaluation. begin: choose a part of the data and `items` samples of its subset. chunk: add n samples from
 * position `first` on; windows: for tokens, add n windows that the caller has read (feed_batch). end: get the
 * sums. */
int resident_evaluate_begin(struct resident *r, const struct feed *f, int64_t items,
                            struct err *err) MUST_CHECK;
int resident_evaluate_chunk(struct resident *r, int64_t first, int n, struct err *err) MUST_CHECK;
int resident_evaluate_windows(struct resident *r, const float *x, const int32_t *labels, int n,
                              struct err *err) MUST_CHECK;
int resident_evaluate_end(struct resident *r, struct queued_loss *ret, struct err *err) MUST_CHECK;

#endif
