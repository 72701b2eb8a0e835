/* route.c - from path and query to what is meant, and which objects a selector takes. */
#include "tests/fakes/world.h"

#include "common/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void decode(char *s)
{
    char *to = s;

    for (; *s; s++, to++) {
        unsigned byte;
        if (*s == '%' && sscanf(s + 1, "%2x", &byte) == 1) {
            *to = (char)byte;
            s += 2;
        } else {
            *to = *s;
        }
    }
    *to = '\0';
}

static void copy_to(char *to, size_t size, const char *value)
{
    snprintf(to, size, "%s", value);
}

static void parse_query(char *query, struct route *r)
{
    char *rest = query;

    for (char *pair = strsep(&rest, "&"); pair; pair = strsep(&rest, "&")) {
        char *value = strchr(pair, '=');
        if (!value)
            continue;
        *value++ = '\0';
        decode(value);
        if (strcmp(pair, "labelSelector") == 0)
            copy_to(r->labels, sizeof(r->labels), value);
        else if (strcmp(pair, "fieldSelector") == 0)
            copy_to(r->fields, sizeof(r->fields), value);
        else if (strcmp(pair, "resourceVersion") == 0)
            copy_to(r->version, sizeof(r->version), value);
        else if (strcmp(pair, "continue") == 0)
            copy_to(r->more, sizeof(r->more), value);
        else if (strcmp(pair, "limit") == 0)
            r->limit = (int)strtol(value, NULL, 10);
        else if (strcmp(pair, "watch") == 0)
            r->watch = strcmp(value, "true") == 0;
        else if (strcmp(pair, "force") == 0)
            r->apply = strcmp(value, "true") == 0;
        else if (strcmp(pair, "allowWatchBookmarks") == 0)
            r->bookmarks = strcmp(value, "true") == 0;
    }
}

/* The parts after the group and version: [namespaces/NS/]plural[/name[/sub]]. */
static bool parse_rest(const struct world *w, const char *prefix, char *rest, struct route *r)
{
    char *part[6] = {0};
    int n = 0;
    int at = 0;

    for (char *p = strsep(&rest, "/"); p; p = strsep(&rest, "/")) {
        if (n == 6)
            return false;
        decode(p);
        part[n++] = p;
    }
    if (n > 2 && strcmp(part[0], "namespaces") == 0) {
        copy_to(r->ns, sizeof(r->ns), part[1]);
        at = 2;
    }
    for (size_t i = 0; at < n && i < w->n_kinds; i++)
        if (strcmp(w->kinds[i].prefix, prefix) == 0 && strcmp(w->kinds[i].plural, part[at]) == 0)
            r->kind = &w->kinds[i];
    if (at + 1 < n)
        copy_to(r->name, sizeof(r->name), part[at + 1]);
    if (at + 2 < n)
        copy_to(r->sub, sizeof(r->sub), part[at + 2]);
    return r->kind != NULL && at + 3 >= n;
}

/* "/api/v1" ends at the third, "/apis/group/version" at the fourth. */
static char *nth_slash(char *s, int n)
{
    for (; *s; s++)
        if (*s == '/' && --n == 0)
            return s;
    return NULL;
}

bool world_route(const struct world *w, const char *target, struct route *ret)
{
    char text[4096];

    *ret = (struct route){0};
    if (strlen(target) >= sizeof(text))
        return false;
    copy_to(text, sizeof(text), target);
    char *query = strchr(text, '?');
    if (query) {
        *query++ = '\0';
        parse_query(query, ret);
    }
    char *end = nth_slash(text, strncmp(text, "/apis/", 6) == 0 ? 4 : 3);
    if (!end)
        return false;
    *end = '\0';
    return parse_rest(w, text, end + 1, ret);
}

/* One requirement of a label selector: a=b, a==b, a!=b, a, !a. */
static bool label_fits(char *req, const cJSON *labels)
{
    bool negate = *req == '!';
    char *eq = strchr(req + negate, '=');

    if (!eq)
        return (json_str(labels, req + negate) != NULL) != negate;
    const char *want = eq + 1 + (eq[1] == '=');
    bool not_equal = eq > req && eq[-1] == '!';
    eq[not_equal ? -1 : 0] = '\0';
    const char *have = json_str(labels, req);
    return (have && strcmp(have, want) == 0) != not_equal;
}

/* One requirement of a field selector: path=value, path==value; the path is of members with dots between. */
static bool field_fits(char *req, const cJSON *object)
{
    char *eq = strchr(req, '=');
    const cJSON *at = object;

    if (!eq)
        return false;
    *eq = '\0';
    for (char *key = strsep(&req, "."); key; key = strsep(&req, "."))
        at = cJSON_GetObjectItemCaseSensitive(at, key);
    const char *have = cJSON_GetStringValue(at);
    return have && strcmp(have, eq + 1 + (eq[1] == '=')) == 0;
}

bool world_matches(const struct route *r, const cJSON *object)
{
    const cJSON *meta = json_child(object, "metadata");
    const cJSON *labels = json_child(meta, "labels");
    char text[1024];
    char *rest = text;

    copy_to(text, sizeof(text), r->labels);
    for (char *p = strsep(&rest, ","); p; p = strsep(&rest, ","))
        if (*p && !label_fits(p, labels))
            return false;
    copy_to(text, sizeof(text), r->fields);
    rest = text;
    for (char *p = strsep(&rest, ","); p; p = strsep(&rest, ","))
        if (*p && !field_fits(p, object))
            return false;
    return true;
}
