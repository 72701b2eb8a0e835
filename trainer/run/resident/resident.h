/* resident.h - a training that lives on a device with graphs: data, weights and moments stay in its memory, and a step is
 * recorded once and launched again and again.
 *
 * What goes over to the device for a step is one struct step_order, what comes back one struct step_record, both in memory
 * that the two share. The process reads a record RESIDENT_LAG steps late, so that the device never waits for it; who needs
 * a step's loss at once asks (train.exact) and waits.
 *
 * A step of one micro-batch is recorded whole. Of several, one is recorded, and launched for each: gradients are added up,
 * in their order as on the CPU, and exchanged, bounded and applied once. Tokens are laid out by the process, step by step.
 *
 * Alone, and with NCCL, a step is one graph, the exchange in it; flags then ride behind the gradient, and all ranks learn
 * of them after the same step, RESIDENT_LAG steps late. A large gradient is summed in buckets, beside the
 * pass that makes it (--bucket_mb). Where the process takes the sums (gloo) it is two graphs around all_reduce, and every
 * step is waited for.
 *
 * Of a model in stages a step is one graph with NCCL, whatever the number of micro-batches: what is sent and received is in it,
 * then the sum of loss and flags. Without NCCL its first half
 * is queued as it is: activations go by way of the process.
 *
 * Ownership: resident_open to resident_close; parts are borrowed meanwhile. The model is placed on the device, and stays.
 * Order:     the first step of a size is queued as it is, the second is recorded: what CUDA and cuBLAS load when they are
 *            first used cannot be loaded while a graph is recorded. It waits for the steps before it, under their deadline,
 *            and for each of its own exchanges: to load what comes behind may wait for the device, without one.
 * Errors:    ERR_FATAL (memory; the device), those of the collectives: with NCCL whatever
 *            waits for the device has their deadline. resident_close gives a lost device (collectives/device.h) nothing
 *            back, and waits half a second at most to find out: look at device_comm->lost behind it.
 */
#ifndef TK_TRAINER_RUN_RESIDENT_RESIDENT_H
#define TK_TRAINER_RUN_RESIDENT_RESIDENT_H

#include "kernels/queued.h"
#include "trainer/run/train_parts.h"

enum { RESIDENT_RING = 16, RESIDENT_LAG = 8, RESIDENT_GRAPHS = 8 };

struct resident;

/* Bytes of device memory that training a model of sequences takes, the model's own included, with micro-batches of `rows`
 * samples and an optimiser with two moments. Not counted: the order of the samples, 4 bytes each; the context. */
int resident_needs(const struct model_spec *spec, int rows, size_t *ret, struct err *err) MUST_CHECK;

struct resident *resident_open(const struct train_parts *p, struct err *err) MUST_CHECK;
void resident_close(struct resident *r);

/* The places that this rank takes from now on: an epoch's order, of which the sampler says what is left. */
int resident_order(struct resident *r, const struct sampler *s, const uint32_t *order,
                   struct err *err) MUST_CHECK;

/* As train_step. grad: (parameters + 1) for the sums of the ranks, where the process takes them. */
int resident_step(struct resident *r, int64_t step, double lr, uint32_t flags, bool exact, float *grad,
                  struct train_result *ret, struct err *err) MUST_CHECK;

/* Losses added up since resident_order: this rank's, and the means over all. Waits. */
int resident_sums(struct resident *r, double *own, double *mean, struct err *err) MUST_CHECK;

/* Weights, buffers and moments, to the device and back (train_pull). pull waits; ERR_FATAL when the loss of a step that nobody
 * has read yet is not finite: the weights are not those of as many steps as were launched. */
void resident_push(struct resident *r);
int resident_pull(struct resident *r, enum train_reads reads, struct err *err) MUST_CHECK;

/* Evaluation. begin: of this part of the data, and `items` places of its subset; chunk: add n samples from place `first` on,
 * or of tokens n windows that the caller has read (feed_batch); end: what they add up to. */
int resident_evaluate_begin(struct resident *r, const struct feed *f, int64_t items,
                            struct err *err) MUST_CHECK;
int resident_evaluate_chunk(struct resident *r, int64_t first, int n, struct err *err) MUST_CHECK;
int resident_evaluate_windows(struct resident *r, const float *x, const int32_t *labels, int n,
                              struct err *err) MUST_CHECK;
int resident_evaluate_end(struct resident *r, struct queued_loss *ret, struct err *err) MUST_CHECK;

#endif
