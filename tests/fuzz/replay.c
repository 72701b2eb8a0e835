/* replay.c - a fuzz target without a fuzzer: replay FOLDER feeds it each file, each prefix, each changed byte. */
#include "fuzz.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/fsutil.h"

#include <dirent.h>
#include <string.h>

/* In memory of exactly its size, for the sanitizers to see what is read beyond. */
static void feed(const char *bytes, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1);

    if (!copy)
        abort();
    if (len)
        memcpy(copy, bytes, len);
    (void)LLVMFuzzerTestOneInput(copy, len);
    free(copy);
}

static void feed_file(const char *path)
{
    static const unsigned char CHANGES[] = {0x01, 0x20, 0x80, 0xff};
    cleanup_buf struct buf text = BUF_INIT(64 << 10);
    struct err err;

    if (fs_read(path, &text, &err) < 0) {
        fprintf(stderr, "replay: %s\n", err.msg);
        exit(1);
    }
    for (size_t len = 0; len <= text.len; len++)
        feed(buf_str(&text), len);
    for (size_t i = 0; i < text.len; i++) {
        for (size_t k = 0; k < ARRAY_LEN(CHANGES); k++) {
            text.data[i] = (char)(text.data[i] ^ CHANGES[k]);
            feed(text.data, text.len);
            text.data[i] = (char)(text.data[i] ^ CHANGES[k]);
        }
    }
}

int main(int argc, char **argv)
{
    struct dirent **names = NULL;
    int files = 0;

    int n = argc == 2 ? scandir(argv[1], &names, NULL, alphasort) : -1;
    for (int i = 0; i < n; i++) {
        char path[1024];
        snprintf(path, sizeof(path), "%s/%s", argv[1], names[i]->d_name);
        if (names[i]->d_name[0] != '.') {
            feed_file(path);
            files++;
        }
        free(names[i]);
    }
    free(names);
    printf("%d files\n", files);
    if (files == 0)
        fprintf(stderr, "usage: replay FOLDER, a folder with files\n");
    return files ? 0 : 1;
}
