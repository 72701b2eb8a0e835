/* version.c - compare two resourceVersions as numbers. */
#include "kube/version.h"

#include "common/sv.h"

#include <stdint.h>
#include <string.h>

bool version_is_newer(const char *version, const char *than)
{
    int64_t a;
    int64_t b;

    return sv_i64(sv_from(version), 0, INT64_MAX, &a) && sv_i64(sv_from(than), 0, INT64_MAX, &b) && a > b;
}

bool version_is_reached(const char *version, const char *wanted)
{
    return strcmp(version, wanted) == 0 || version_is_newer(version, wanted);
}
