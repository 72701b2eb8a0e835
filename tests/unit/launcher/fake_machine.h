/* fake_machine.h - a folder that looks like a machine's /sys, /proc and /dev. */
#ifndef TK_TESTS_LAUNCHER_FAKE_MACHINE_H
#define TK_TESTS_LAUNCHER_FAKE_MACHINE_H

/* The path of the folder, a static buffer. */
const char *fake_machine_open(void);
void fake_machine_close(void);

/* One file with this text; `path` begins with a slash. */
void fake_machine_put(const char *text, const char *path, ...) __attribute__((format(printf, 2, 3)));
void fake_machine_remove(const char *path);

/* `sockets` x `nodes` of them x `caches` of them x `cores` of them x 2 threads: the second threads of all cores are
 * numbered after all first ones, as Linux does on x86. */
void fake_machine_cpus(int sockets, int nodes, int caches, int cores);

/* A GPU with device file nvidia<minor> at NUMA node `node`, its UUID GPU-<minor four times>. */
void fake_machine_gpu(const char *address, int minor, int node);

#endif
