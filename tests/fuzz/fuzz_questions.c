/* fuzz_questions.c - llm.c's questions: what is handed out lies within the file's bytes, whatever they are. */
#include "fuzz.h"

#include "trainer/generate/evalfile.h"

#include <stdlib.h>
#include <string.h>

static void inside(const struct choice_tokens *t, const char *bytes, size_t len)
{
    const char *from = (const char *)t->token;

    MUST(t->len > 0 && from >= bytes && from + t->len * sizeof(*t->token) <= bytes + len);
}

static void read_all(const char *bytes, size_t len)
{
    struct err err = {0};
    struct evalfile f;
    struct choice_question q;
    bool more = true;
    int64_t count = 0;
    int rc = evalfile_open(&f, "x.bin", bytes, len, &err);

    while (!rc && more) {
        rc = evalfile_next(&f, &q, &more, &err);
        if (rc || !more)
            break;
        MUST(q.endings >= 2 && q.endings <= CHOICE_ENDINGS_MAX && q.answer >= 0 && q.answer < q.endings);
        inside(&q.context, bytes, len);
        for (int i = 0; i < q.endings; i++)
            inside(&q.ending[i], bytes, len);
        count++;
    }
    MUST(rc ? err.kind == ERR_INVALID && err.msg[0] : count == f.count);
}

/* A header that is none stops everything, so the input is what stands behind a good one, of as many questions as its first byte
 * says; with 0 it is the whole file. The copy is exact, for the sanitizer to see what is read behind it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t header[12] = {0x8a, 0xd8, 0x34, 0x01, 1, 0, 0, 0, size ? data[0] : 0};
    const size_t front = size && data[0] ? EVALFILE_HEADER : 0;

    if (!size)
        return 0;
    char *copy = calloc(1, front + size - 1 + (front + size == 1));
    MUST(copy);
    memcpy(copy, header, front ? sizeof(header) : 0);
    memcpy(copy + front, data + 1, size - 1);
    read_all(copy, front + size - 1);
    free(copy);
    return 0;
}
