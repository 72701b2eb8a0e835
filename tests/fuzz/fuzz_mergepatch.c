/* fuzz_mergepatch.c - the patch between two documents (two lines) turns the one into the other, and is none when they
 * are equal. */
#include "fuzz.h"

#include "operator/plan/mergepatch.h"
#include "yamldoc.h"

#include <string.h>

/* RFC 7386 cannot say null, and an object that names a member twice means nothing certain. */
static bool is_plain(const cJSON *node)
{
    const cJSON *m;

    cJSON_ArrayForEach(m, node)
    {
        if (cJSON_IsNull(m) || !is_plain(m))
            return false;
        if (cJSON_IsObject(node) && cJSON_GetObjectItemCaseSensitive(node, m->string) != m)
            return false;
    }
    return true;
}

enum { COMPARED_MAX = 12 }; /* levels: cJSON_Compare takes twice as long with each */

static int depth_of(const cJSON *node)
{
    int deepest = 0;
    const cJSON *m;

    cJSON_ArrayForEach(m, node)
    {
        int depth = depth_of(m);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err;
    const char *text = (const char *)data;
    const char *line = size && size < 100000 ? memchr(text, '\n', size) : NULL;

    if (!line)
        return 0;
    cleanup_json cJSON *from = json_parse(text, (size_t)(line - text), &err);
    cleanup_json cJSON *to = json_parse(line + 1, size - (size_t)(line + 1 - text), &err);
    if (!cJSON_IsObject(from) || !cJSON_IsObject(to) || !is_plain(from) || !is_plain(to))
        return 0;
    cleanup_json cJSON *patch = mergepatch_diff(from, to);
    bool compared = depth_of(to) <= COMPARED_MAX;
    MUST(!compared || (patch == NULL) == (cJSON_Compare(from, to, true) != 0));
    if (patch)
        yamldoc_merge(from, patch);
    cleanup_json cJSON *again = mergepatch_diff(from, to);
    MUST(!again);
    MUST(!compared || cJSON_Compare(from, to, true));
    return 0;
}
