/* folder.h - a test's own folder and the files in it. */
#ifndef TK_TESTS_UNIT_KUBE_AUTH_FOLDER_H
#define TK_TESTS_UNIT_KUBE_AUTH_FOLDER_H

/* Fixtures of a test: made empty, removed with all that is in it. */
int folder_setup(void **ctx);
int folder_teardown(void **ctx);

const char *folder_root(void);
const char *folder_path(const char *name); /* until the next call */
void folder_write(const char *name, const char *text);

#endif
