/* fuzz_execcred.c - what a credential plugin writes is a whole credential or refused, and is never in the error. */
#include "fuzz.h"

#include "kube/auth/execcred.h"

#include <string.h>

#define V1 "client.authentication.k8s.io/v1"

static void check_text(const char *text)
{
    MUST(!text || *text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct exec_credential c = {0};
    cJSON *tree = NULL;
    struct err err = {0};

    int rc = exec_credential_decode((struct sv){(const char *)data, size}, V1, &tree, &c, &err);
    if (rc < 0) {
        MUST(err.kind == ERR_INVALID && err.msg[0] && !tree && !c.token && !c.cert);
        /* What stands for the secret in the corpus; the two that are no secret are shown. */
        bool shown = strstr(err.msg, "kind: ") || strstr(err.msg, "apiVersion: ");
        MUST(shown || !strstr(err.msg, "s3cret"));
        return 0;
    }
    MUST(tree && (c.token || c.cert) && !c.cert == !c.key);
    check_text(c.token);
    check_text(c.cert);
    check_text(c.key);
    for (const char *p = c.token; p && *p; p++)
        MUST(*p > ' ' && *p <= '~');
    exec_tree_free(tree);
    return 0;
}
