/* first_bytes.c - identify formats by a table of first bytes, then markup, JSON and text by their content. */
#include "trainer/data/first_bytes.h"

#include "common/text.h"
#include "trainer/data/gzfile.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { LOOK = 64, TEXT_MIN = 4, TEXT_SURE = 12, TEXT_SHOWN = 40 };

/* The first rows are stand-ins: pointers and compressed files. */
static const struct beginning {
    const char *bytes;
    size_t len;
    const char *name;
} BEGINNINGS[] = {
    {"version https://git-lfs", 23, "a Git LFS pointer, not the file itself (`git lfs pull` fetches it)"},
    {"\x1f\x8b", 2, "gzip-compressed (gunzip it)"},
    {"\x28\xb5\x2f\xfd", 4, "zstd-compressed (unzstd it)"},
    {"BZh", 3, "bzip2-compressed (bunzip2 it)"},
    {"\xfd\x37zXZ", 5, "xz-compressed (unxz it)"},
    {"PK\3\4", 4, "a zip archive"},
    {"\x93NUMPY", 6, "a NumPy array (.npy)"},
    {"\x80\2\x8a\nl\xfc", 6, "a pickle (of PyTorch before 1.6: torch.load and torch.save it)"},
    {"\x89HDF", 4, "an HDF5 file"},
    {"GGUF", 4, "a GGUF file"},
    {"\x88\xd8\x34\x01", 4, "llm.c's shard of tokens"},
    {"\xc6\xd7\x34\x01", 4, "llm.c's weights"},
};
enum { STAND_INS = 5 };

/* Recognise markup, JSON or other text by all characters of a short file, else by the first ones. */
static bool name_text(const char *p, size_t len, char out[static FIRST_BYTES_NAME])
{
    size_t text = 0, shown = 0;

    for (; len && isspace((uint8_t)*p); p++)
        len--;
    while (text < len && text < TEXT_SURE && (isprint((uint8_t)p[text]) || isspace((uint8_t)p[text])))
        text++;
    if (text < TEXT_MIN || (text < len && text < TEXT_SURE))
        return false;
    while (shown < len && shown < TEXT_SHOWN && isprint((uint8_t)p[shown]))
        shown++;
    if (*p == '<')
        snprintf(out, FIRST_BYTES_NAME, "a web page (HTML or XML), not the file itself");
    else if (*p == '{' || *p == '[')
        snprintf(out, FIRST_BYTES_NAME, "JSON (an index of shards, or a server's error)");
    else
        snprintf(out, FIRST_BYTES_NAME, "text that begins \"%.*s\"", (int)shown, p);
    return true;
}

enum first_bytes first_bytes_name(const void *bytes, size_t len, char out[static FIRST_BYTES_NAME])
{
    struct err ignored;
    const size_t mark = text_mark(bytes, len, &ignored) > 0 ? sizeof(TEXT_MARK) - 1 : 0;

    for (size_t i = 0; i < ARRAY_LEN(BEGINNINGS); i++)
        if (len >= BEGINNINGS[i].len && memcmp(bytes, BEGINNINGS[i].bytes, BEGINNINGS[i].len) == 0) {
            snprintf(out, FIRST_BYTES_NAME, "%s", BEGINNINGS[i].name);
            return i < STAND_INS ? FIRST_BYTES_STAND_IN : FIRST_BYTES_OTHER;
        }
    return name_text((const char *)bytes + mark, len - mark, out) ? FIRST_BYTES_OTHER : FIRST_BYTES_UNKNOWN;
}

int first_bytes_refuse(const char *path, const char *expected, struct err *err)
{
    struct err ignored;
    cleanup_gzfile struct gzfile *g = gzfile_open(path, &ignored);
    char first[LOOK], name[FIRST_BYTES_NAME];
    size_t len;

    if (g && !gzfile_read(g, first, sizeof(first), &len, &ignored) && first_bytes_name(first, len, name))
        return err_set(err, ERR_INVALID, "%s: %s, expected %s", path, name, expected);
    return -1;
}
