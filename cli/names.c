/* names.c - the grammar of names, keys and labels. */
#include "cli/names.h"

#include <ctype.h>
#include <string.h>

#define SMALL "abcdefghijklmnopqrstuvwxyz0123456789-"
#define LABEL SMALL "ABCDEFGHIJKLMNOPQRSTUVWXYZ_."

enum { NAME_MAX_BYTES = 253, LABEL_MAX_BYTES = 63 };

static bool is_word(struct sv text, const char *characters, size_t max)
{
    for (size_t i = 0; i < text.len; i++)
        if (!strchr(characters, text.p[i]))
            return false;
    return text.len && text.len <= max && isalnum((unsigned char)text.p[0]) &&
           isalnum((unsigned char)text.p[text.len - 1]);
}

bool names_is_object(struct sv text)
{
    struct sv rest = text, part;
    bool ret = text.len <= NAME_MAX_BYTES;

    while (ret && sv_next(&rest, '.', &part))
        ret = is_word(part, SMALL, NAME_MAX_BYTES);
    return ret;
}

bool names_is_key(const char *text)
{
    const size_t len = strlen(text);

    return len && len <= NAME_MAX_BYTES && strspn(text, LABEL) == len && strcmp(text, ".") != 0 &&
           strncmp(text, "..", 2) != 0;
}

bool names_is_label(const char *name, const char *value)
{
    const char *slash = strchr(name, '/');
    const struct sv v = sv_from(value);

    return (!slash || names_is_object((struct sv){name, (size_t)(slash - name)})) &&
           is_word(sv_from(slash ? slash + 1 : name), LABEL, LABEL_MAX_BYTES) &&
           (!v.len || is_word(v, LABEL, LABEL_MAX_BYTES));
}
