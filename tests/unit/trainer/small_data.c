/* small_data.c - IDX files of the tests' own. */
#include "trainer/small_data.h"

#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static void put32(FILE *f, uint32_t v)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        fputc((int)(v >> shift & 255), f);
}

static FILE *create(const char *dir, const char *name, uint32_t magic, int items)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    put32(f, magic);
    put32(f, (uint32_t)items);
    return f;
}

static void write_part(const char *dir, const char *images, const char *labels, int items)
{
    enum { PIXELS = SMALL_DATA_SIDE * SMALL_DATA_SIDE };
    uint32_t x = 1;

    FILE *f = create(dir, images, 2051, items);
    put32(f, SMALL_DATA_SIDE);
    put32(f, SMALL_DATA_SIDE);
    for (int i = 0; i < items * PIXELS; i++) {
        x = x * 1664525u + 1013904223u;
        fputc((int)(x >> 28) + (i % (i / PIXELS % 10 + 2)) * 20, f);
    }
    assert_int_equal(fclose(f), 0);
    f = create(dir, labels, 2049, items);
    for (int i = 0; i < items; i++)
        fputc(i % 10, f);
    assert_int_equal(fclose(f), 0);
}

void small_data_make(char dir[static SMALL_DATA_DIR_BYTES])
{
    small_data_make_in("/tmp", dir);
}

void small_data_make_in(const char *home, char dir[static SMALL_DATA_DIR_BYTES])
{
    snprintf(dir, SMALL_DATA_DIR_BYTES, "%s/small_data_XXXXXX", home);
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chmod(dir, 0755), 0);
    write_part(dir, "train-images-idx3-ubyte", "train-labels-idx1-ubyte", SMALL_DATA_TRAIN);
    write_part(dir, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", SMALL_DATA_TEST);
}

void small_data_remove(const char *dir)
{
    char command[SMALL_DATA_DIR_BYTES + 16];

    snprintf(command, sizeof(command), "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}
