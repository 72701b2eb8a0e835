/* plancase.h - test helper: one golden case, from its file to the plan as a document. tests/golden/plan/README.md describes the
 * files.
 *
 * Ownership: trees are freed with cJSON_Delete.
 */
#ifndef TK_TESTS_OPERATOR_PLANCASE_H
#define TK_TESTS_OPERATOR_PLANCASE_H

#include "sentences.h"

#include <dirent.h>

#define PLANCASES_FOLDER TK_SOURCE_DIR "/tests/golden/plan"

/* What all cases share. */
struct plancases {
    struct sentences sentences;
    cJSON *bases; /* by name, in the long form; "tutorial" is the tutorial's job */
};

int plancases_open(struct plancases *ret, struct err *err) MUST_CHECK;
void plancases_close(struct plancases *c);

/* The files of all cases, as scandir returns them. */
int plancases_list(struct dirent ***ret);

/* `plan` is {actions, requeueInMs, podsFirst, mayWait}. Of a status's conditions it has those that differ from the
 * job's own (of a job that has none yet, from the ones that are False at first), and {type, gone: true} for one that is left
 * out. */
struct plancase {
    cJSON *doc; /* the file as it stands */
    cJSON *job; /* as the API server would hold it */
    cJSON *plan;
};

/* Of a document as a file has it, which *ret takes. On failure, too, *ret is to be freed. */
int plancase_run(const struct plancases *c, cJSON *doc, struct plancase *ret, struct err *err) MUST_CHECK;

/* Of a file of the folder. */
int plancase_read(const struct plancases *c, const char *file, struct plancase *ret,
                  struct err *err) MUST_CHECK;
void plancase_free(struct plancase *p);

/* The job alone. */
cJSON *plancase_job(const struct plancases *c, const char *file, struct err *err) MUST_CHECK;

#endif
