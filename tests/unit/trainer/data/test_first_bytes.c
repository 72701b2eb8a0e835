/* test_first_bytes.c - files of another format: every reader names what they are, and accepts the right ones. */
#include "files.h"
#include "shard.h"
#include "test.h"

#include "trainer/data/first_bytes.h"
#include "trainer/data/idx.h"
#include "trainer/data/tokens.h"
#include "trainer/state/weights/weights.h"

#define TEXT(s) s, sizeof(s) - 1

static const struct {
    const char *bytes;
    size_t len;
    const char *says;
} OTHERS[] = {
    {TEXT("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 548105171\n"),
     "a Git LFS pointer"},
    {TEXT("<!DOCTYPE html>\n<html lang=\"en\"><head>"), "a web page"},
    {TEXT("\xef\xbb\xbf\r\n  <HTML><BODY>Sign in"), "a web page"},
    {TEXT("<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code>"), "a web page"},
    {TEXT("{\n  \"metadata\": {\"total_size\": 1},\n  \"weight_map\": {}}\n"), "JSON"},
    {TEXT("{\"error\":\"Repository not found\"}"), "JSON"},
    {TEXT("[\"a\", 1]"), "JSON"},
    {TEXT("Entry not found"), "text that begins \"Entry not found\""},
    {TEXT("404: Not Found\n\x1b[31m"), "text that begins \"404: Not Found\""},
    {TEXT("Invalid username or password, and much more behind it"),
     "text that begins \"Invalid username or pass"},
    {TEXT("\x28\xb5\x2f\xfd\x04\x00and what follows it"), "zstd-compressed"},
    {TEXT("BZh91AY&SY and what follows it"), "bzip2-compressed"},
    {TEXT("\xfd"
          "7zXZ\0\0\4 and what follows it"),
     "xz-compressed"},
    {TEXT("GGUF\3\0\0\0 and what follows it"), "a GGUF file"},
    {TEXT("\x89HDF\r\n\x1a\n\0\0 and what follows it"), "an HDF5 file"},
    {TEXT("\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\2M\xe9\3."), "a pickle"},
};

static int open_images(const char *path, struct err *err)
{
    struct idx_shape shape;

    return idx_probe(path, IDX_IMAGES, &shape, err);
}

static int open_labels(const char *path, struct err *err)
{
    struct idx_shape shape;

    return idx_probe(path, IDX_LABELS, &shape, err);
}

static int open_tokens(const char *path, struct err *err)
{
    cleanup_tokens struct tokens *t = tokens_open(path, 4, err);

    return t ? 0 : -1;
}

static int open_weights(const char *path, struct err *err)
{
    cleanup_weights struct weights w = {0};

    return weights_open(&w, path, err);
}

static const struct reader {
    const char *name;
    const char *expected;
    int (*open)(const char *path, struct err *err);
    bool inflates;
} READERS[] = {
    {"train-images-idx3-ubyte", "expected IDX images", open_images, true},
    {"train-labels-idx1-ubyte", "expected IDX labels", open_labels, true},
    {"x.npy", "expected a NumPy array", open_tokens, false},
    {"train.bin", "expected llm.c's shard of tokens", open_tokens, false},
    {"model.safetensors", "expected .safetensors", open_weights, false},
};

static void refuse(const struct files_fixture *f, const struct reader *r, const void *bytes, size_t len,
                   const char *says)
{
    char path[PATH_MAX + 64];
    struct err err = {0};

    snprintf(path, sizeof(path), "%s/%s", f->folder, r->name);
    files_write(path, bytes, len);
    int rc = r->open(path, &err);
    if (!rc || err.kind != ERR_INVALID || !strstr(err.msg, path) || !strstr(err.msg, says) ||
        !strstr(err.msg, r->expected))
        fail_msg("%s: kind %d \"%s\", expected \"%s\", \"%s\"", r->name, err.kind, rc ? err.msg : "opened",
                 says, r->expected);
    for (const char *c = err.msg; *c; c++)
        assert_in_range(*c, ' ', '~');
}

static int setup(void **state)
{
    return files_setup(state, "file");
}

static void all_readers_name_all_others(void **state)
{
    struct files_fixture *f = *state;
    uint8_t gz[512];

    for (size_t r = 0; r < ARRAY_LEN(READERS); r++)
        for (size_t i = 0; i < ARRAY_LEN(OTHERS); i++) {
            refuse(f, &READERS[r], OTHERS[i].bytes, OTHERS[i].len, OTHERS[i].says);
            size_t n = files_gzip(OTHERS[i].bytes, OTHERS[i].len, gz, sizeof(gz));
            refuse(f, &READERS[r], gz, n, READERS[r].inflates ? OTHERS[i].says : "gzip-compressed");
        }
}

/* Files that are one reader's and were given to another. */
static void readers_name_each_others_files(void **state)
{
    struct files_fixture *f = *state;
    uint8_t shard[TOKENS_SHARD_HEADER];
    static const uint8_t weights[1024] = {0xc6, 0xd7, 0x34, 0x01, 3}; /* 20240326 */

    shard_header(0, shard);
    refuse(f, &READERS[4], shard, sizeof(shard), "llm.c's shard of tokens");
    refuse(f, &READERS[3], weights, sizeof(weights), "llm.c's weights");
    refuse(f, &READERS[0], TEXT("\x93NUMPY\1\0 and what follows it"), "a NumPy array (.npy)");
    refuse(f, &READERS[4], TEXT("\x93NUMPY\1\0 and what follows it"), "a NumPy array (.npy)");
    refuse(f, &READERS[2], TEXT("PK\3\4 and what follows it"), "a zip archive");
}

/* A damaged file of the format is not reported as one of another. */
static void a_damaged_file_is_still_of_its_format(void **state)
{
    struct files_fixture *f = *state;
    struct err err;

    files_write(f->path, TEXT("\2\0\0\0\0\0\0\0{}x"));
    assert_int_equal(open_weights(f->path, &err), -1);
    assert_non_null(strstr(err.msg, "/file: read as .safetensors: data: 1 bytes, but the tensors are 0"));
    char path[PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/x.npy", f->folder);
    files_write(path, TEXT("\x93NUMPY\7\0 and what follows it"));
    assert_int_equal(open_tokens(path, &err), -1);
    assert_non_null(strstr(err.msg, "/x.npy: not a .npy file of version 1 to 3"));
}

/* Plain bytes are tokens whatever they are, but nobody trains on what a compressor made, or on a pointer. */
static void plain_bytes_that_were_never_meant(void **state)
{
    struct files_fixture *f = *state;
    static const struct reader plain = {"corpus.txt", "expected plain text", open_tokens, false};
    uint8_t gz[512];
    struct err err;

    refuse(f, &plain, gz, files_gzip(TEXT("a text that is long enough"), gz, sizeof(gz)), "gzip-compressed");
    refuse(f, &plain, OTHERS[0].bytes, OTHERS[0].len, "a Git LFS pointer");
    refuse(f, &plain, OTHERS[10].bytes, OTHERS[10].len, "zstd-compressed");
    for (size_t i = 1; i < 10; i++) { /* pages, JSON, texts */
        files_write(f->path, OTHERS[i].bytes, OTHERS[i].len);
        if (open_tokens(f->path, &err))
            fail_msg("%s", err.msg);
    }
}

/* Whole or cut anywhere, with any bytes: nothing is read behind `len`, and what is named can be printed. */
static void any_bytes(void **state)
{
    char what[FIRST_BYTES_NAME];
    uint32_t x = 9;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(OTHERS); i++)
        for (size_t len = 0; len <= OTHERS[i].len; len++) {
            cleanup_free char *exact = malloc(len + !len);
            memcpy(exact, OTHERS[i].bytes, len);
            if (first_bytes_name(exact, len, what))
                assert_in_range(strlen(what), 1, FIRST_BYTES_NAME - 1);
        }
    for (int i = 0; i < 20000; i++) {
        uint8_t bytes[64];
        for (size_t k = 0; k < sizeof(bytes); k++)
            bytes[k] = (uint8_t)((x = x * 1664525U + 1013904223U) >> 24);
        if (i % 2) /* the length of a header, as .safetensors begins */
            memset(bytes + 3, 0, 5), bytes[8] = '{', bytes[2] &= 15;
        bytes[9] |= 0x80;
        if (bytes[0] < 0x80 && !(bytes[0] == 0x1f && bytes[1] == 0x8b) &&
            first_bytes_name(bytes, sizeof(bytes), what))
            fail_msg("%02x %02x: %s", bytes[0], bytes[1], what);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_readers_name_all_others, setup, files_teardown),
        cmocka_unit_test_setup_teardown(readers_name_each_others_files, setup, files_teardown),
        cmocka_unit_test_setup_teardown(a_damaged_file_is_still_of_its_format, setup, files_teardown),
        cmocka_unit_test_setup_teardown(plain_bytes_that_were_never_meant, setup, files_teardown),
        cmocka_unit_test(any_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
