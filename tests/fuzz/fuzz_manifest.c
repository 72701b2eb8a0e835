/* fuzz_manifest.c - a manifest that the reader accepts names no path, and has the same values when written again. */
#include "fuzz.h"

#include "trainer/state/files/manifest.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_buf struct buf text = BUF_INIT(MANIFEST_BYTES);
    struct manifest m;
    struct manifest again;
    struct err err = {0};

    if (manifest_decode((const char *)data, size, &m, &err)) {
        MUST((err.kind == ERR_INVALID || (err.kind == ERR_CONFLICT && m.format != MANIFEST_FORMAT)) &&
             err.msg[0]);
        return 0;
    }
    MUST(m.step >= 0 && m.files > 0 && m.files <= MANIFEST_FILES_MAX);
    for (int i = 0; i < m.files; i++)
        MUST(m.file[i].bytes >= 0 && m.file[i].name[0] && m.file[i].name[0] != '.' &&
             !strchr(m.file[i].name, '/'));
    MUST(manifest_encode(&m, &text, &err) == 0);
    MUST(manifest_decode(text.data, text.len, &again, &err) == 0);
    MUST(again.step == m.step && again.files == m.files && strcmp(again.run_id, m.run_id) == 0);
    return 0;
}
