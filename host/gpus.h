/* gpus.h - count the NVIDIA GPUs that a process may use, without NVIDIA's libraries: for launcher and trainer.
 *
 * Numerics:  gpus_visible counts as torch.cuda.device_count does (PyTorch 2.15, torch/cuda/__init__.py,
 *            _parse_visible_devices).
 */
#ifndef TK_HOST_GPUS_H
#define TK_HOST_GPUS_H

/* The number of device files nvidia0, nvidia1, ... in `dev` ("/dev"). */
int gpus_devices(const char *dev);

/* How many of `devices` are visible with this value of CUDA_VISIBLE_DEVICES (NULL: not set, all are visible).
 * A list of numbers counts up to the first entry that is negative, not a number or not a device; a list of
 * UUIDs ("GPU-...") up to the first entry that is not one; of MIG instances ("MIG-...") each entry counts.
 * With a duplicate entry none is visible. It does not check that a UUID belongs to this machine. */
int gpus_visible(const char *visible, int devices);

#endif
