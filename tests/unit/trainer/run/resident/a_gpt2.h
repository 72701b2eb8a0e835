/* a_gpt2.h - a training of a small GPT-2, on an emulated GPU or on the CPU. */
#ifndef TK_TESTS_UNIT_TRAINER_RUN_RESIDENT_A_GPT2_H
#define TK_TESTS_UNIT_TRAINER_RUN_RESIDENT_A_GPT2_H

#include "a_training.h"
#include "collectives/device.h"
#include "trainer/model/gpt2.h"

enum { TIME = 12, VOCAB = 31 };

struct task {
    int batch, micro; /* of a step; how many parts it has */
    int items;        /* windows of an epoch */
    double clip;
    bool recompute;
    bool cublas;
    struct device_comm *device_comm; /* or NULL */
    size_t bucket_bytes;
};

void open_training(struct training *t, const struct task *task, bool device);

#endif
