/* quantity.c - read resource quantities by the API server's grammar. */
#include "operator/api/quantity.h"

#include "common/sv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 64 };

static const char *skip_digits(const char *s)
{
    return s + strspn(s, "0123456789");
}

bool quantity_read(const char *text, double *ret)
{
    static const struct {
        const char *suffix;
        double times;
    } UNITS[] = {{"", 1},        {"n", 1e-9},    {"u", 1e-6},    {"m", 1e-3},
                 {"k", 1e3},     {"M", 1e6},     {"G", 1e9},     {"T", 1e12},
                 {"P", 1e15},    {"E", 1e18},    {"Ki", 1024},   {"Mi", 1024 * 1024.},
                 {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60}};
    const char *s = skip_digits(text + (text[0] == '+' || text[0] == '-'));

    if (*s == '.')
        s = skip_digits(s + 1);
    *ret = strtod(text, NULL);
    for (size_t i = 0; i < ARRAY_LEN(UNITS); i++)
        if (strcmp(s, UNITS[i].suffix) == 0) {
            *ret *= UNITS[i].times;
            return text[0] != '\0';
        }
    if (*s != 'e' && *s != 'E')
        return false;
    s++;
    s += *s == '+' || *s == '-';
    return *s && !*skip_digits(s);
}

/* The API server accepts blanks around a quantity. False: it is longer than any. */
static bool copy_text(const cJSON *node, char text[static TEXT_BYTES])
{
    const struct sv v = sv_trim(sv_from(node->valuestring));

    snprintf(text, TEXT_BYTES, "%.*s", (int)v.len, v.p);
    return v.len < TEXT_BYTES;
}

double quantity_amount(const cJSON *q)
{
    char text[TEXT_BYTES];
    double amount = 0;

    if (cJSON_IsNumber(q))
        return q->valuedouble;
    bool read = cJSON_IsString(q) && copy_text(q, text) && quantity_read(text, &amount);
    return read && isfinite(amount) ? amount : 0;
}

static bool is_quantity(const cJSON *node)
{
    char text[TEXT_BYTES];
    double ignored;

    if (!cJSON_IsString(node))
        return cJSON_IsNumber(node) || cJSON_IsNull(node);
    return !copy_text(node, text) ||
           quantity_read(text, &ignored); /* a longer text is left to the API server */
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
