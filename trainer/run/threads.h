/* threads.h - the number of threads of a rank: OMP_NUM_THREADS, or its share of the usable CPUs. session.c
 * calls it. Pure. */
#ifndef TK_TRAINER_RUN_THREADS_H
#define TK_TRAINER_RUN_THREADS_H

/* `omp` is OMP_NUM_THREADS or NULL; of a list ("4,2") the first number is used, as in OpenMP. Without it the
 * pod's ranks share its usable CPUs. Returns 1..max. */
int threads_per_rank(const char *omp, int cpus, int local_world, int max);

#endif
