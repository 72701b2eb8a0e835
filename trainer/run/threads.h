/* threads.h - how many threads a rank uses: OMP_NUM_THREADS, or its share of the usable CPUs. Pure. */
#ifndef TK_TRAINER_RUN_THREADS_H
#define TK_TRAINER_RUN_THREADS_H

/* `omp` is OMP_NUM_THREADS or NULL; a list ("4,2") counts by its first number, as OpenMP has it. Without it the pod's
 * ranks share its usable CPUs. 1..max. */
int threads_per_rank(const char *omp, int cpus, int local_world, int max);

#endif
