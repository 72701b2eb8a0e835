/* facts.h - what CUDA's runtime says about this machine. */
#ifndef TK_TRAINER_GPU_FACTS_H
#define TK_TRAINER_GPU_FACTS_H

#include "trainer/gpu/plugin.h"

/* As struct gpu_plugin says. */
int facts_read(struct gpu_facts *ret, struct err *err) MUST_CHECK;

#endif
