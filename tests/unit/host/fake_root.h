/* fake_root.h - a folder that stands for / in tests of what reads /proc and /sys. */
#ifndef TK_TESTS_UNIT_HOST_FAKE_ROOT_H
#define TK_TESTS_UNIT_HOST_FAKE_ROOT_H

/* The file root/path, path "/sys/...", with its folders. Fails the test when it cannot be written. */
void fake_root_put(const char *root, const char *path, const char *text);

/* The folder with all that is in it. */
void fake_root_remove(const char *root);

#endif
