/* credential.c - hold a credential in memory, and wipe it when it is released. */
#include "kube/auth/credential.h"

#include "common/fsutil.h"
#include "common/memory.h"

#include <stdlib.h>
#include <string.h>

enum { SECRET_MAX_BYTES = 1 << 20 };

static void wipe(struct buf *b)
{
    if (b->data)
        explicit_bzero(b->data, b->cap);
    buf_release(b);
}

#define cleanup_wipe __attribute__((cleanup(wipe)))

int kube_credential_from_file(struct kube_credential *s, const char *path, struct err *err)
{
    cleanup_wipe struct buf bytes = BUF_INIT(SECRET_MAX_BYTES);

    if (fs_read(path, &bytes, err) < 0)
        return -1;
    if (!bytes.len)
        return err_set(err, ERR_INVALID, "%s: empty", path);
    kube_credential_release(s);
    *s = (struct kube_credential){bytes, memory_strdup(path)};
    bytes = (struct buf){0};
    return 0;
}

void kube_credential_release(struct kube_credential *s)
{
    wipe(&s->bytes);
    free(s->file);
    *s = (struct kube_credential){0};
}

int kube_credential_check_token(struct kube_credential *s, struct err *err)
{
    struct buf *b = &s->bytes;

    while (b->len && strchr(" \t\r\n", b->data[b->len - 1]))
        b->data[--b->len] = '\0';
    if (!b->len)
        return err_set(err, ERR_INVALID, "token: empty");
    for (size_t i = 0; i < b->len; i++)
        if (b->data[i] <= ' ' || b->data[i] > '~')
            return err_set(err, ERR_INVALID, "token: byte %zu is not a printable character", i);
    return 0;
}
