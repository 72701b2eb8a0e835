/* quantity.c - check resource quantities by the API server's grammar. */
#include "operator/api/quantity.h"

#include "common/sv.h"

#include <string.h>

static const char *skip_digits(const char *s)
{
    return s + strspn(s, "0123456789");
}

bool quantity_is(const char *text)
{
    static const char *const SUFFIXES[] = {"",  "n", "u",  "m",  "k",  "M",  "G",  "T",
                                           "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    const char *s = skip_digits(text + (text[0] == '+' || text[0] == '-'));

    if (*s == '.')
        s = skip_digits(s + 1);
    for (size_t i = 0; i < ARRAY_LEN(SUFFIXES); i++)
        if (strcmp(s, SUFFIXES[i]) == 0)
            return text[0] != '\0';
    if (*s != 'e' && *s != 'E')
        return false;
    s++;
    s += *s == '+' || *s == '-';
    return *s && !*skip_digits(s);
}

/* The API server accepts blanks around a quantity. */
static bool is_quantity(const cJSON *node)
{
    char text[64];

    if (cJSON_IsNumber(node) || cJSON_IsNull(node))
        return true;
    if (!cJSON_IsString(node))
        return false;
    const struct sv v = sv_trim(sv_from(node->valuestring));
    if (v.len >= sizeof(text))
        return true; /* not a quantity to check: left to the API server */
    memcpy(text, v.p, v.len);
    text[v.len] = '\0';
    return quantity_is(text);
}

static int check_list(const struct json_at *resources, const char *key, struct err *err)
{
    const struct json_at list = json_member(resources, key);
    const cJSON *q;

    if (json_expect_object(&list, err) < 0)
        return -1;
    cJSON_ArrayForEach(q, list.node)
    {
        if (is_quantity(q))
            continue;
        /* json_member walks the list, so call it only for an error. */
        const struct json_at at = json_member(&list, q->string);
        return json_err(&at, err, "expected a quantity such as 1, 500m or 2Gi, got %s%.40s%s",
                        cJSON_IsString(q) ? "\"" : "", cJSON_IsString(q) ? q->valuestring : "something else",
                        cJSON_IsString(q) ? "\"" : "");
    }
    return 0;
}

int quantity_check(const struct json_at *container, struct err *err)
{
    const struct json_at resources = json_member(container, "resources");

    return json_expect_object(&resources, err) < 0 || check_list(&resources, "limits", err) < 0 ||
                   check_list(&resources, "requests", err) < 0
               ? -1
               : 0;
}
