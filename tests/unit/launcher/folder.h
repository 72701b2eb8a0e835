/* folder.h - a folder of a test's own, which is the working directory meanwhile: for cmocka's setup and teardown. */
#ifndef TK_TESTS_LAUNCHER_FOLDER_H
#define TK_TESTS_LAUNCHER_FOLDER_H

#include <sys/types.h>

int folder_begin(void **state);
int folder_end(void **state);

/* Write a file, with the folders in its name. */
void folder_put(const char *path, const char *text, mode_t mode);

#endif
