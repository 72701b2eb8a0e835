/* existing.h - whose is the object that has the name we wanted to create? Pure. */
#ifndef TK_OPERATOR_EXISTING_H
#define TK_OPERATOR_EXISTING_H

#include "operator/plan/plan.h"

enum existing {
    EXISTING_WANTED,  /* ours, and what we were about to create: done */
    EXISTING_LEAVING, /* being deleted, or of a deleted job of the same name and soon collected: wait */
    EXISTING_OLDER, /* ours, a pod of an earlier attempt or restart (or without our labels): it has to go first */
    EXISTING_NEWER,   /* ours, a pod of a later attempt: we are the ones who are behind */
    EXISTING_FOREIGN, /* someone else's */
};

/* `act` is the create that met AlreadyExists, `there` the object that is there; name and UID are those of the job. */
enum existing existing_judge(const struct action *act, const cJSON *there, const char *job,
                             const char *job_uid);

/* The pod still has the label by which we watch it, and the owner by which we find it. */
bool existing_is_known(const cJSON *there, const char *job_uid);

/* The first of them. */
bool existing_is_labelled(const cJSON *there);

#endif
