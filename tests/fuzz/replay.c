/* replay.c - a fuzz target without a fuzzer: replay FOLDER feeds it each file, each prefix, each changed byte. What a
 * fuzzer has found lies in FOLDER/found, and is fed as it is: that is many files. */
#include "fuzz.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/fsutil.h"

#include <dirent.h>
#include <stdbool.h>
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

static void feed_file(const char *path, bool changed)
{
    static const unsigned char CHANGES[] = {0x01, 0x20, 0x80, 0xff};
    cleanup_buf struct buf text = BUF_INIT(64 << 10);
    struct err err;

    if (fs_read(path, &text, &err) < 0) {
        fprintf(stderr, "replay: %s\n", err.msg);
        exit(1);
    }
    if (!changed) {
        feed(buf_str(&text), text.len);
        return;
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

static int feed_folder(const char *folder, bool changed)
{
    struct dirent **names = NULL;
    int files = 0;

    int n = scandir(folder, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char path[1024];
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
        if (names[i]->d_name[0] != '.' && names[i]->d_type != DT_DIR) {
            feed_file(path, changed);
            files++;
        }
        free(names[i]);
    }
    free(names);
    return files;
}

int main(int argc, char **argv)
{
    char found[1024];
    int files = argc == 2 ? feed_folder(argv[1], true) : 0;

    snprintf(found, sizeof(found), "%s/found", argc == 2 ? argv[1] : "");
    printf("%d files, %d found\n", files, files ? feed_folder(found, false) : 0);
    if (files == 0)
        fprintf(stderr, "usage: replay FOLDER, a folder with files\n");
    return files ? 0 : 1;
}
