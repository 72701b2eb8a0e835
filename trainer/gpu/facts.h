/* facts.h - query CUDA's runtime for this machine's GPUs and versions. gpu/plugin.c exports it. */
#ifndef TK_TRAINER_GPU_FACTS_H
#define TK_TRAINER_GPU_FACTS_H

#include "trainer/gpu/plugin.h"

/* `facts` of struct gpu_plugin. */
int facts_read(struct gpu_facts *ret, struct err *err) MUST_CHECK;

#endif
