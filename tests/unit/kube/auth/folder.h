/* folder.h - a test's own folder and the files in it, and the kubeconfig that most of them begin with. */
#ifndef TK_TESTS_UNIT_KUBE_AUTH_FOLDER_H
#define TK_TESTS_UNIT_KUBE_AUTH_FOLDER_H

/* Fixtures of a test: made empty, removed with all that is in it. */
int folder_setup(void **ctx);
int folder_teardown(void **ctx);

const char *folder_root(void);
const char *folder_path(const char *name); /* until the next call */
void folder_write(const char *name, const char *text);

/* Contexts c1 (the current one; namespace team), anonymous, and lost, whose cluster there is not. */
#define KUBECONFIG(cluster, user)                                                                            \
    "apiVersion: v1\nkind: Config\ncurrent-context: c1\n"                                                    \
    "clusters:\n- name: k1\n  cluster: {" cluster "}\n"                                                      \
    "users:\n- name: u1\n  user: {" user "}\n"                                                               \
    "contexts:\n- name: c1\n  context: {cluster: k1, user: u1, namespace: team}\n"                           \
    "- name: anonymous\n  context: {cluster: k1}\n- name: lost\n  context: {cluster: nowhere}\n"

#endif
