/* gpus.h - count the NVIDIA GPUs that a process may use, without NVIDIA's libraries: for launcher and trainer.
 *
 * Numerics: gpus_visible counts as torch.cuda.device_count does (PyTorch 2.15, torch/cuda/__init__.py, _parse_visible_devices).
 */
#ifndef TK_HOST_GPUS_H
#define TK_HOST_GPUS_H

/* The number of device files nvidia0, nvidia1, ... in `dev` ("/dev"). */
int gpus_devices(const char *dev);

/* How many of so many devices CUDA_VISIBLE_DEVICES leaves (NULL: it is not set, and leaves all). A list of numbers counts up to its
 * first entry that is negative, no number or no device; a list of UUIDs ("GPU-...") up to the first that is none; each of MIG
 * instances ("MIG-...") counts. An entry twice: none is left. Whether a UUID is one of this machine's is not known here. */
int gpus_visible(const char *visible, int devices);

#endif
