/* patterns.c - match the names of files, and recognise keys by name and content. */
#include "cli/submit/patterns.h"

#include "common/sv.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

enum { PATTERN_BYTES = 512 };

/* Names of keys, whatever their case. Programs are not judged by their names. */
static const char KEYS[] =
    "id_*\n*.pem\n*.key\n*.p12\n*.pfx\n*.jks\n*.ppk\n*.kdbx\n*.keystore\n*.env\n*.env.*\n"
    "*netrc\n*kubeconfig*\n*service?account*.json\n*serviceaccount*.json\n"
    "*credential*\n*secret*\n*passw*\n*token\n!*.py\n!*.sh\n";

/* One line without its comment and the spaces at its end. */
static struct sv pattern_of(struct sv line)
{
    while (line.len && strchr(" \t\r", line.p[line.len - 1]))
        line.len--;
    return line.len && line.p[0] == '#' ? (struct sv){line.p, 0} : line;
}

int patterns_check(const char *text, const char *where, struct err *err)
{
    struct sv rest = sv_from(text), line;

    for (int n = 1; sv_next(&rest, '\n', &line); n++) {
        const struct sv p = pattern_of(line);
        if (p.len >= PATTERN_BYTES || memmem(p.p, p.len, "**", 2))
            return err_set(err, ERR_INVALID,
                           "%.120s:%d: \"%.*s\": expected a pattern of at most %d bytes, without **: NAME "
                           "is found at any depth, FOLDER/ is all in it",
                           where, n, (int)(p.len < 60 ? p.len : 60), p.p, PATTERN_BYTES - 1);
    }
    return 0;
}

bool patterns_fit(const char *text, const char *path, bool folder, int flags)
{
    struct sv rest = sv_from(text), line;
    const char *slash = strrchr(path, '/');
    char pattern[PATTERN_BYTES];
    bool ret = false;

    while (sv_next(&rest, '\n', &line)) {
        const struct sv p = pattern_of(line);
        const bool back = sv_starts(p, "!"), folders = sv_ends(p, "/");
        snprintf(pattern, sizeof(pattern), "%.*s", (int)(p.len - back - folders), p.p + back);
        const char *what = strchr(pattern, '/') || !slash ? path : slash + 1;
        if (pattern[0] && (folder || !folders) &&
            !fnmatch(pattern + (pattern[0] == '/'), what, FNM_PATHNAME | flags))
            ret = !back;
    }
    return ret;
}

/* A line without blanks at its end, and without what ends a string in a list. */
static struct sv without_end(struct sv line)
{
    struct sv l = sv_trim(line);

    if (!sv_ends(l, ","))
        return l;
    l = sv_trim((struct sv){l.p, l.len - 1});
    l.len -= sv_ends(l, "\"") || sv_ends(l, "'");
    return l;
}

/* The line before it, in a file of PEM, a string of JSON or a list of lines. */
static bool has_private_key(const struct buf *bytes)
{
    static const char BEGIN[] = "-----BEGIN ", KEY[] = "PRIVATE KEY";
    const char *at = buf_str(bytes), *end = at + bytes->len;

    for (; (at = memmem(at, (size_t)(end - at), BEGIN, strlen(BEGIN))); at++) {
        const struct sv line = without_end((struct sv){at, strcspn(at, "\r\n\\")});
        if (sv_ends(line, "-----") && sv_contains(line, KEY))
            return true;
    }
    return false;
}

const char *patterns_key(const char *path, const struct buf *bytes)
{
    if (bytes)
        return has_private_key(bytes) ? "a private key is in it" : NULL;
    return patterns_fit(KEYS, path, false, FNM_CASEFOLD) ? "by its name" : NULL;
}
