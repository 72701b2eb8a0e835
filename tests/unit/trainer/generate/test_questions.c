/* test_questions.c - llm.c's files of questions: what stands in them, and every word that cannot be. */
#include "test.h"

#include "common/fsutil.h"
#include "eval.h"
#include "trainer/generate/evalfile.h"
#include "trainer/generate/questions.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const FIRST[] = {"a man", " sits", " is a roof", " x"};
static const char *const SECOND[] = {"b", " y", " zz"};

static void both(struct buf *file)
{
    eval_begin(file, 2);
    eval_add(file, 0, 2, 4, FIRST);
    eval_add(file, 1, 0, 3, SECOND);
}

static void expect_tokens(const struct choice_tokens *got, const char *want)
{
    assert_int_equal(got->len, strlen(want));
    for (size_t i = 0; i < got->len; i++)
        assert_int_equal(got->token[i], want[i]);
}

static void says_what_is_there(void **state)
{
    (void)state;
    cleanup_buf struct buf file = BUF_INIT(1 << 16);
    struct evalfile f;
    struct choice_question q;
    struct err err;
    bool more;

    both(&file);
    assert_int_equal(evalfile_open(&f, "x.bin", file.data, file.len, &err), 0);
    assert_int_equal(evalfile_next(&f, &q, &more, &err), 0);
    assert_true(more && q.endings == 3 && q.answer == 2);
    expect_tokens(&q.context, FIRST[0]);
    for (int i = 0; i < 3; i++)
        expect_tokens(&q.ending[i], FIRST[1 + i]);
    assert_int_equal(evalfile_next(&f, &q, &more, &err), 0);
    assert_true(more && q.endings == 2 && q.answer == 0);
    expect_tokens(&q.ending[1], SECOND[2]);
    assert_int_equal(evalfile_next(&f, &q, &more, &err), 0);
    assert_false(more);
}

/* -1 and what is wrong, or 0: of a file with one word changed; place: from the first question's first word. */
static int read_all(struct buf *file, struct err *err)
{
    struct evalfile f;
    struct choice_question q;
    bool more = true;

    if (evalfile_open(&f, "x.bin", file->data, file->len, err))
        return -1;
    while (more)
        if (evalfile_next(&f, &q, &more, err))
            return -1;
    return 0;
}

static void words_that_cannot_be(void **state)
{
    (void)state;
    static const struct {
        int place, word;
        const char *want;
    } cases[] = {
        {-512, 1, "x.bin: magic: 20185089, expected 20240522"},
        {-510, 2, "x.bin: version: 2, expected 1"},
        {-508, 0, "x.bin: questions: 0, expected 1..65536"},
        {-507, 2, "x.bin: questions: 131074, expected 1..65536"},
        {-508, 1, "x.bin: 28 bytes behind the last of 1 questions"},
        {-508, 3, "x.bin: question 2: bytes left: 0, expected at least 10"},
        {0, 65534, "x.bin: question 0: first word: 65534, expected 65535"},
        {1, 8, "x.bin: question 0: bytes: 8, expected an even number, and as many in the file"},
        {1, 65534, "x.bin: question 0: bytes: 65534, expected an even number, and as many in the file"},
        {1, 61, "x.bin: question 0: bytes: 61, expected an even number"},
        {1, 64, "question 0: bytes: 64, expected those of its tokens"},
        {1, 60,
         "question 0: ending: 2, expected at least one token, and all of them in the question's bytes"},
        {2, 1, "x.bin: question 0: number: 1, expected its place in the file"},
        {3, 3, "x.bin: question 0: right ending: 3, expected one of its endings"},
        {4, 1, "x.bin: question 0: endings: 1, expected 2..16"},
        {4, 17, "x.bin: question 0: endings: 17, expected 2..16"},
        {4, 4, "x.bin: question 0: ending: 0, expected at least one token"},
        {5, 0, "x.bin: question 0: context: 0, expected at least one token"},
        {5, 65535, "x.bin: question 0: context: 65535, expected at least one token"},
        {11, 0, "x.bin: question 0: ending: 0, expected at least one token"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cleanup_buf struct buf file = BUF_INIT(1 << 16);
        struct err err = {0};
        both(&file);
        char *at = file.data + 1024 + 2 * cases[i].place;
        at[0] = (char)cases[i].word;
        at[1] = (char)(cases[i].word >> 8);
        assert_int_equal(read_all(&file, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        if (!strstr(err.msg, cases[i].want))
            fail_msg("\"%s\", expected \"%s\"", err.msg, cases[i].want);
    }
}

/* Of no length but the whole is anything left out. */
static void files_that_are_cut(void **state)
{
    (void)state;
    cleanup_buf struct buf file = BUF_INIT(1 << 16);
    struct err err;

    both(&file);
    for (size_t whole = file.len; file.len > 0; file.len--)
        assert_int_equal(read_all(&file, &err), file.len == whole ? 0 : -1);
}

static void opened_by_name(void **state)
{
    (void)state;
    char path[] = "/tmp/test_questions.XXXXXX.bin";
    cleanup_buf struct buf file = BUF_INIT(1 << 16);
    struct err err = {0};
    int fd = mkstemps(path, 4);

    assert_true(fd >= 0);
    close(fd);
    both(&file);
    assert_int_equal(fs_write_atomic(path, file.data, file.len, &err), 0);
    cleanup_questions struct questions *q = questions_open(path, NULL, 0, &err);
    if (!q)
        fail_msg("%s", err.msg);
    assert_int_equal(questions_count(q), 2);
    expect_tokens(&questions_at(q, 1)->ending[0], SECOND[1]);
    assert_int_equal(questions_check(q, 123, 10, &err), 0);
    assert_int_equal(questions_check(q, 123, 9, &err), -1);
    assert_string_equal(err.msg, "question 0: an ending of 10 tokens, expected at most 9");
    assert_int_equal(questions_check(q, 122, 10, &err), -1);
    assert_string_equal(err.msg, "question 1: ending: token 1: 122, expected 0..121: the model's");
    cleanup_questions struct questions *one = questions_open(path, NULL, 1, &err);
    assert_int_equal(questions_count(one), 1);
    unlink(path);
    assert_null(questions_open(path, NULL, 0, &err));
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    assert_null(questions_open("/dev/null", NULL, 0, &err)); /* text, and nothing that makes tokens of it */
    assert_non_null(strstr(err.msg, "/dev/null: expected tokens"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_is_there),
        cmocka_unit_test(words_that_cannot_be),
        cmocka_unit_test(files_that_are_cut),
        cmocka_unit_test(opened_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
