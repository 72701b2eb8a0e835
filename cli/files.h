/* files.h - read what the user names on the command line. For the verbs that need no cluster.
 *
 * Errors:    those of common/fsutil.h and cli/jobfile.h.
 */
#ifndef TK_CLI_FILES_H
#define TK_CLI_FILES_H

#include "common/cleanup.h"
#include "common/err.h"

#include <cjson/cJSON.h>

/* Append the objects of a YAML file ("-": of stdin) to `entries`, as jobfile_parse does. */
int files_objects(const char *path, cJSON *entries, struct err *err) MUST_CHECK;

#endif
