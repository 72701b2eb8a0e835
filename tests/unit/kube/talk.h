/* talk.h - a watcher and a server that the test plays: the watcher's requests, the answers, what its sink received. No network, no
 * clock. */
#ifndef TK_TESTS_UNIT_KUBE_TALK_H
#define TK_TESTS_UNIT_KUBE_TALK_H

#include "kube/watcher.h"

struct talk {
    struct watcher *w;
    struct arena a;
    struct kube_http_request req;
    char seen
        [8192]; /* "[" replace_begin, "+name" upsert, "-name" removed, "]" replace_end, "?name" unreadable, "!" problem */
    char problem[ERR_MSG_BYTES];
    int64_t now;
};

#define META(name, rv) "'metadata':{'name':'" name "','uid':'u-" name "','resourceVersion':'" rv "'}"
#define ITEM(name, rv) "{" META(name, rv) "}"
#define LIST(rv, more, items)                                                                                \
    "{'kind':'PodList','apiVersion':'v1','metadata':{'resourceVersion':'" rv "','continue':'" more           \
    "'},'items':[" items "]}\n"
#define EVENT(type, name, rv) "{'type':'" type "','object':{'kind':'Pod'," META(name, rv) "}}\n"
#define BOOKMARK(rv) "{'type':'BOOKMARK','object':{'kind':'Pod','metadata':{'resourceVersion':'" rv "'}}}\n"
#define ERROR(code, reason)                                                                                  \
    "{'type':'ERROR','object':{'kind':'Status','code':" #code ",'reason':'" reason "','message':'no'}}\n"

int talk_setup(void **ctx);
int talk_teardown(void **ctx);

/* The next request must have this in its path. */
void talk_asks(struct talk *t, const char *path_part);
int talk_feed(struct talk *t, const char *bytes);
int64_t talk_ends(struct talk *t, int status);
int64_t talk_breaks(struct talk *t, enum err_kind kind);
/* It asks with that, and gets this whole answer. */
void talk_answers(struct talk *t, const char *path_part, const char *bytes);
/* It asks with that, whose past is forgotten; and all is quiet for a while. */
void talk_expires(struct talk *t, const char *path_part);
void talk_saw(struct talk *t, const char *expected); /* since the last look */
void talk_synced(struct talk *t);                    /* a list of a and b */

#endif
