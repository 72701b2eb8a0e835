/* epilogue.h - ask an algorithm of cuBLAS whether its epilogue does what matmul.h says of an extra, before it is used.
 *
 * Its manual does not say what an epilogue makes of NaN, and no test here has run one. So each plan is run once, on operands
 * of which a few elements are replaced by known numbers; these are given back. What it writes is written again by the caller.
 */
#ifndef TK_KERNELS_CUDA_EPILOGUE_H
#define TK_KERNELS_CUDA_EPILOGUE_H

#include "kernels/cuda/matmul.h"

/* Queue the plan: C = extra(by A B + kept C + bias). false: cuBLAS refused. */
typedef bool epilogue_run(struct cuda *c, struct plan *plan, const struct product *p, float by, float kept);

/* UNSURE: the operands held what is not finite, so that the results tell nothing of the epilogue. */
enum epilogue_verdict { EPILOGUE_HOLDS, EPILOGUE_WRONG, EPILOGUE_UNSURE };

enum { EPILOGUE_WHY_BYTES = 120 };

/* Waits for the stream, which is not being recorded. WRONG also where the device failed: the context keeps that error.
 * why: for people, of what does not hold. */
enum epilogue_verdict epilogue_ask(struct cuda *c, struct plan *plan, const struct product *p,
                                   epilogue_run *run, char why[EPILOGUE_WHY_BYTES]) MUST_CHECK;

/* For people: "ReLU". */
const char *epilogue_name(enum extra extra);

#endif
