/* secret.c - credentials in memory. */
#include "kube/secret.h"

#include "common/fsutil.h"

#include <stdint.h>
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

static void replace(struct kube_secret *s, struct buf *bytes, const char *file)
{
    kube_secret_release(s);
    s->bytes = *bytes;
    *bytes = (struct buf){0};
    s->file = file ? strdup(file) : NULL;
    if (file && !s->file)
        abort();
}

int kube_secret_from_text(struct kube_secret *s, const char *text, struct err *err)
{
    cleanup_wipe struct buf bytes = BUF_INIT(SECRET_MAX_BYTES);

    if (!*text)
        return err_set(err, ERR_INVALID, "expected a value, got an empty one");
    if (buf_puts(&bytes, text, err) < 0)
        return -1;
    replace(s, &bytes, NULL);
    return 0;
}

static int digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) : -1;
}

int kube_secret_from_base64(struct kube_secret *s, const char *text, struct err *err)
{
    cleanup_wipe struct buf bytes = BUF_INIT(SECRET_MAX_BYTES);
    uint32_t bits = 0;
    int n_bits = 0;
    size_t n = 0;
    size_t pad = 0;

    for (const char *p = text; *p; p++) {
        if (*p == '\n' || *p == '\r')
            continue;
        n++;
        if (*p == '=') {
            pad++;
            continue;
        }
        int d = digit(*p);
        if (d < 0 || pad)
            return err_set(err, ERR_INVALID, "expected base64, got something else at byte %zu",
                           (size_t)(p - text));
        bits = bits << 6 | (uint32_t)d;
        n_bits += 6;
        if (n_bits < 8)
            continue;
        n_bits -= 8;
        if (buf_append(&bytes, (char[]){(char)(bits >> n_bits & 0xff)}, 1, err) < 0)
            return -1;
    }
    if (n % 4 || pad > 2 || !bytes.len)
        return err_set(err, ERR_INVALID, "expected base64, got %zu characters of it", n);
    replace(s, &bytes, NULL);
    return 0;
}

int kube_secret_from_file(struct kube_secret *s, const char *path, struct err *err)
{
    cleanup_wipe struct buf bytes = BUF_INIT(SECRET_MAX_BYTES);

    if (fs_read(path, &bytes, err) < 0)
        return -1;
    if (!bytes.len)
        return err_set(err, ERR_INVALID, "%s: empty", path);
    replace(s, &bytes, path);
    return 0;
}

void kube_secret_reread(struct kube_secret *s)
{
    cleanup_wipe struct buf bytes = BUF_INIT(SECRET_MAX_BYTES);
    struct err ignored;

    if (!s->file || fs_read(s->file, &bytes, &ignored) < 0 || !bytes.len)
        return;
    wipe(&s->bytes);
    s->bytes = bytes;
    bytes = (struct buf){0};
}

void kube_secret_release(struct kube_secret *s)
{
    wipe(&s->bytes);
    free(s->file);
    *s = (struct kube_secret){0};
}

int kube_secret_check_token(struct kube_secret *s, struct err *err)
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
