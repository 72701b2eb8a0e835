/* staged_nets.h - models in stages that whole runs train, on CPUs and on GPUs. */
#ifndef TK_TESTS_UNIT_TRAINER_RUN_RESIDENT_STAGED_NETS_H
#define TK_TESTS_UNIT_TRAINER_RUN_RESIDENT_STAGED_NETS_H

enum { STAGES = 3 }; /* of the first */

/* All but the defaults. Images, statistics and masks cross the borders; 100 samples train in batches of 24 and one of 4, 20
 * validate. */
#define STAGED_NET                                                                                           \
    "name: staged\n"                                                                                         \
    "model:\n"                                                                                               \
    "  input: {rows: 6, cols: 6, channels: 2}\n"                                                             \
    "  layers:\n"                                                                                            \
    "    - {type: conv2d, name: a, out: 4, kernel: 3}\n"                                                     \
    "    - relu\n"                                                                                           \
    "    - {type: batchnorm2d, name: n}\n"                                                                   \
    "    - flatten\n"                                                                                        \
    "    - {type: linear, name: b, out: 12}\n"                                                               \
    "    - {type: dropout, p: 0.2}\n"                                                                        \
    "    - {type: linear, name: c, out: 5}\n"                                                                \
    "  stages: [a, n, c]\n"                                                                                  \
    "loss: cross_entropy\n"                                                                                  \
    "optimizer: {type: adam, lr: 0.01}\n"                                                                    \
    "data: {format: synthetic, items: 120, outputs: 5, targets: teacher, train_items: 100, val_items: 20}\n"

static const char THREE_STAGES[] = STAGED_NET "defaults: {epochs: 3, batch_size: 24, micro_batches: 3}\n";

/* Two stages. */
static const char TWO_STAGES[] =
    "name: two\n"
    "model:\n"
    "  input: {rows: 1, cols: 1, channels: 20}\n"
    "  layers:\n"
    "    - flatten\n"
    "    - {type: linear, name: a, out: 16}\n"
    "    - relu\n"
    "    - {type: linear, name: b, out: 3}\n"
    "  stages: [a, b]\n"
    "loss: mse\n"
    "optimizer: {type: sgd, lr: 0.05, momentum: 0.9}\n"
    "data: {format: synthetic, items: 96, outputs: 3, targets: uniform, train_items: 72, val_items: 24}\n"
    "defaults: {epochs: 3, batch_size: 24, micro_batches: 2}\n";

#endif
