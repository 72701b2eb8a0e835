/* members.c - iterate over the members of a JSON object in a text. */
#include "launcher/members.h"

#include <string.h>

/* The end of the string whose content begins at `p`, or the end of the text. */
static const char *behind_string(const char *p)
{
    for (; *p && *p != '"'; p++)
        p += *p == '\\' && p[1];
    return p + (*p == '"');
}

/* The end of the value that begins at `p`: the comma or bracket that follows, or the end of the text. */
static const char *behind_value(const char *p)
{
    for (int depth = 0; *p; p++) {
        const bool opens = *p == '{' || *p == '[', closes = *p == '}' || *p == ']';
        if (depth == 0 && (closes || *p == ','))
            break;
        depth += opens - closes;
        if (*p == '"')
            p = behind_string(p + 1) - 1;
    }
    return p;
}

static const char *behind_spaces(const char *p)
{
    return p + strspn(p, " \t\r\n");
}

bool members_next(const char **p, struct json_member *ret)
{
    const char *name = *p = behind_spaces(*p);

    if (*name != '"')
        return false;
    const char *end = behind_string(name + 1), *colon = behind_spaces(end);
    if (*colon != ':')
        return false;
    const char *value = behind_spaces(colon + 1);
    *p = behind_value(value);
    *ret = (struct json_member){{name, (size_t)(end - name)}, {value, (size_t)(*p - value)}};
    const char *next = **p == ',' ? behind_spaces(*p + 1) : *p;
    *p = *next == '"' ? next : *p; /* do not skip a comma without a member after it */
    return true;
}
