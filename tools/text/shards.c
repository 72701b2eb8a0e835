/* shards.c - write a token shard: header, tokens in blocks, then the header again with the number of tokens. */
#include "tools/text/shards.h"

#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BUFFER = 1 << 18 };

/* A glob of the user's training would take them too. */
static int check_none(const char *prefix, const char *kind, struct err *err)
{
    char start[PATH_MAX], pattern[PATH_MAX + 64];
    glob_t found = {0};

    if (tokens_pattern_of(prefix, start, sizeof(start)) >= sizeof(start) ||
        snprintf(pattern, sizeof(pattern), "%s%s_[0-9][0-9][0-9][0-9][0-9][0-9].bin", start, kind) >=
            (int)sizeof(pattern))
        return err_set(err, ERR_INVALID, "--output: a path of %zu bytes", strlen(prefix));
    int rc = glob(pattern, GLOB_NOSORT, NULL, &found);
    if (!rc)
        err_set(err, ERR_INVALID, "%.160s: is there already: remove it, or choose another --output",
                found.gl_pathv[0]);
    globfree(&found);
    return rc ? 0 : -1;
}

int shards_make(struct shards *s, const struct shards_options *o, struct err *err)
{
    *s = (struct shards){.o = *o, .file = {.fd = -1}};
    if (check_none(o->prefix, "", err) || check_none(o->prefix, "_val", err) ||
        check_none(o->prefix, "_train", err))
        return -1;
    s->buffer = malloc(BUFFER);
    return s->buffer ? 0 : err_memory(err, "no memory for shards");
}

void shards_release(struct shards *s)
{
    fs_atomic_abort(&s->file);
    free(s->buffer);
    s->buffer = NULL;
}

static int flush(struct shards *s, struct err *err)
{
    if (fs_write_all(s->file.fd, s->buffer, s->buffered))
        return err_errno(err, ERR_FATAL, errno, "%.160s: cannot write", s->last);
    s->buffered = 0;
    return 0;
}

static bool validates(const struct shards *s)
{
    return s->total < s->o.val_tokens;
}

static int begin(struct shards *s, struct err *err)
{
    const char *kind = !s->o.val_tokens ? "" : validates(s) ? "_val" : "_train";

    if (s->total == s->o.val_tokens)
        s->number = 0;
    if (snprintf(s->last, sizeof(s->last), "%s%s_%06" PRId64 ".bin", s->o.prefix, kind, s->number) >=
        (int)sizeof(s->last))
        return err_set(err, ERR_INVALID, "--output: a path of %zu bytes", strlen(s->o.prefix));
    if (s->number++ > 999999)
        return err_set(err, ERR_INVALID, "more than a million shards: expected larger --shard_tokens");
    tokens_shard_header(0, s->buffer);
    s->buffered = TOKENS_SHARD_HEADER;
    s->in_file = 0;
    return fs_atomic_begin(&s->file, s->last, err);
}

static int end(struct shards *s, struct err *err)
{
    uint8_t header[TOKENS_SHARD_HEADER];

    tokens_shard_header(s->in_file, header);
    if (flush(s, err))
        return -1;
    if (pwrite(s->file.fd, header, sizeof(header), 0) != (ssize_t)sizeof(header))
        return err_errno(err, ERR_FATAL, errno, "%.160s: cannot write", s->last);
    s->files++;
    return fs_atomic_commit(&s->file, err);
}

static int put(struct shards *s, uint16_t token, struct err *err)
{
    if (s->file.fd < 0 && begin(s, err))
        return -1;
    if (s->buffered == BUFFER && flush(s, err))
        return -1;
    s->buffer[s->buffered++] = (uint8_t)token;
    s->buffer[s->buffered++] = (uint8_t)(token >> 8);
    s->in_file++;
    s->total++;
    return s->in_file == s->o.shard_tokens || s->total == s->o.val_tokens ? end(s, err) : 0;
}

int shards_put(struct shards *s, const uint16_t *tokens, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (put(s, tokens[i], err))
            return -1;
    return 0;
}

int shards_end(struct shards *s, struct err *err)
{
    return s->file.fd < 0 ? 0 : end(s, err);
}
