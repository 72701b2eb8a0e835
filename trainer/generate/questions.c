/* questions.c - a list of questions, and llm.c's file into it. */
#include "trainer/generate/questions_state.h"

#include "common/fsutil.h"
#include "trainer/generate/evalfile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool questions_enough(const struct questions *q)
{
    return q->limit && q->count == q->limit;
}

int questions_add(struct questions *q, const struct choice_question *more, struct err *err)
{
    if (q->count == QUESTIONS_MAX)
        return err_set(err, ERR_INVALID, "more than %d questions", QUESTIONS_MAX);
    if (q->count == q->cap) {
        int64_t cap = q->cap ? 2 * q->cap : 64;
        struct choice_question *all = realloc(q->question, (size_t)cap * sizeof(*all));
        if (!all)
            return err_memory(err, "no memory for %" PRId64 " questions", cap);
        q->question = all;
        q->cap = cap;
    }
    q->question[q->count++] = *more;
    return 0;
}

static int read_bin(struct questions *q, struct err *err)
{
    struct evalfile f;
    struct choice_question next;
    bool more = true;

    if (fs_read(q->path, &q->file, err) || evalfile_open(&f, q->path, buf_str(&q->file), q->file.len, err))
        return -1;
    while (more && !questions_enough(q))
        if (evalfile_next(&f, &next, &more, err) || (more && questions_add(q, &next, err)))
            return -1;
    return 0;
}

bool questions_are_tokens(const char *path)
{
    size_t len = strlen(path);

    return len > 4 && strcmp(path + len - 4, ".bin") == 0;
}

static int read_all(struct questions *q, struct bpe *bpe, struct err *err)
{
    if (questions_are_tokens(q->path))
        return read_bin(q, err);
    if (!bpe)
        return err_set(
            err, ERR_INVALID,
            "%.160s: expected tokens (llm.c's .bin): the model's are no bytes, of which text could be made",
            q->path);
    if (questions_read_lines(q, bpe, err))
        return -1;
    return q->count ? 0 : err_set(err, ERR_INVALID, "%.160s: no question in it", q->path);
}

struct questions *questions_open(const char *path, struct bpe *bpe, int64_t limit, struct err *err)
{
    cleanup_questions struct questions *q = calloc(1, sizeof(*q));

    if (!q) {
        err_memory(err, "no memory for questions");
        return NULL;
    }
    *q = (struct questions){.path = path, .limit = limit, .file = BUF_INIT(QUESTIONS_BYTES_MAX)};
    if (read_all(q, bpe, err))
        return NULL;
    q->path = NULL;
    return TAKE(q);
}

void questions_free(struct questions *q)
{
    if (!q)
        return;
    free(q->question);
    buf_release(&q->file);
    arena_release(&q->arena);
    free(q);
}

int64_t questions_count(const struct questions *q)
{
    return q->count;
}

const struct choice_question *questions_at(const struct questions *q, int64_t i)
{
    if (i < 0 || i >= q->count)
        abort();
    return &q->question[i];
}

int questions_check(const struct questions *q, int vocab, int positions, struct err *err)
{
    for (int64_t i = 0; i < q->count; i++)
        if (choice_check(&q->question[i], vocab, positions, err))
            return err_wrap(err, "question %" PRId64, i);
    return 0;
}
