/* folder.h - open, list and remove folders inside an open one: a name that is a link is never followed.
 * ckpt_dir.c and attempt_mark.c call it.
 *
 * Ownership: the caller closes descriptors and streams. */
#ifndef TK_TRAINER_STATE_FILES_FOLDER_H
#define TK_TRAINER_STATE_FILES_FOLDER_H

#include "common/cleanup.h"

#include <dirent.h>
#include <stdbool.h>

/* The descriptor of a folder; -1: errno. */
int folder_open(int at, const char *name);

/* Open a stream of the names in an open folder; NULL: failure. */
DIR *folder_names(int folder);

/* Remove one of our folders with its files, and the folders in it if it has `inner` ones; it stops at any
 * other folder, which is not ours. If another user has replaced the folder by a link, it removes the link and
 * not its target. */
void folder_remove(int at, const char *name, bool inner);

/* Remove everything in it whose name begins with `prefix`. */
void folder_clear(int folder, const char *prefix);

#endif
