/* skim.c - extract namespace, name, UID and a few other strings from a JSON text without parsing all of it. */
#include "kube/skim.h"

#include "common/cleanup.h"
#include "common/json.h"

#include <string.h>

/* The meaning of an open bracket at one of the first levels. */
enum scope { OTHER_LIST, OTHER, EVENT, OBJECT, METADATA, OWNERS, OWNER, SPEC, POLICY, STATUS };

/* Sizes including the NUL: a DNS label, a name. */
enum { LABEL_BYTES = 64, NAME_BYTES = 254 };

struct skim_member {
    enum scope in;
    const char *key;
    enum scope opens; /* OTHER: the value is a string */
    size_t size;      /* of the string; 0: the value is true or false */
};

static const struct skim_member MEMBERS[] = {
    {EVENT, "type", OTHER, 16},
    {EVENT, "object", OBJECT, 0},
    {OBJECT, "metadata", METADATA, 0},
    {OBJECT, "status", STATUS, 0},
    {OBJECT, "spec", SPEC, 0},
    {METADATA, "namespace", OTHER, LABEL_BYTES},
    {METADATA, "name", OTHER, NAME_BYTES},
    {METADATA, "uid", OTHER, 65}, /* the API server's UIDs have 36 characters */
    {METADATA, "resourceVersion", OTHER, 32},
    {METADATA, "deletionTimestamp", OTHER, LABEL_BYTES},
    {METADATA, "ownerReferences", OWNERS, 0},
    {OWNER, "apiVersion", OTHER, NAME_BYTES + LABEL_BYTES},
    {OWNER, "kind", OTHER, LABEL_BYTES},
    {OWNER, "name", OTHER, NAME_BYTES},
    {OWNER, "uid", OTHER, 65},
    {OWNER, "controller", OTHER, 0},
    {STATUS, "reason", OTHER, LABEL_BYTES},
    {SPEC, "runPolicy", POLICY, 0},
    {SPEC, "managedBy", OTHER, NAME_BYTES},
    {POLICY, "managedBy", OTHER, NAME_BYTES},
};

void skim_init(struct skim *s, bool event)
{
    *s = (struct skim){.event = event, .tokens.keep_depth = SKIM_LEVELS};
}

static enum scope scope_at(const struct skim *s, size_t level)
{
    return level >= 1 && level <= SKIM_LEVELS ? (enum scope)s->scopes[level - 1] : OTHER_LIST;
}

static bool is_list(enum scope p)
{
    return p == OTHER_LIST || p == OWNERS;
}

/* The member that the last string names. */
static const struct skim_member *find_member(const struct skim *s)
{
    const enum scope in = scope_at(s, s->tokens.depth);

    for (size_t i = 0; i < ARRAY_LEN(MEMBERS); i++)
        if (MEMBERS[i].in == in && !s->tokens.odd && strcmp(s->tokens.text, MEMBERS[i].key) == 0)
            return &MEMBERS[i];
    return NULL;
}

/* Add the value of a member unless the tree has that member already; then NULL. */
static cJSON *add(cJSON *to, const struct skim_member *m, cJSON *node)
{
    if (!cJSON_GetObjectItemCaseSensitive(to, m->key) && cJSON_AddItemToObjectCS(to, m->key, node))
        return node;
    cJSON_Delete(node);
    return NULL;
}

static void open_bracket(struct skim *s, bool list, size_t level)
{
    const struct skim_member *m = TAKE(s->member);
    cJSON *node = NULL;
    enum scope p = OTHER;

    if (level >= SKIM_LEVELS)
        return;
    if (level == 0) {
        p = s->event ? EVENT : OBJECT;
        node = s->tree = cJSON_CreateObject();
    } else if (scope_at(s, level) == OWNERS && !list) {
        p = OWNER;
        node = cJSON_CreateObject();
        cJSON_AddItemToArray(s->nodes[level - 1], node);
    } else if (m) {
        p = m->opens;
        node = add(s->nodes[level - 1], m,
                   is_list(p) != list || p == OTHER ? cJSON_CreateNull()
                   : list                           ? cJSON_CreateArray()
                                                    : cJSON_CreateObject());
    }
    if (!node || cJSON_IsNull(node))
        p = list ? OTHER_LIST : OTHER;
    s->nodes[level] = node;
    s->scopes[level] = (unsigned char)p;
}

/* Keep only the first owner that is the controller. */
static void close_owner(cJSON *owners, const cJSON *owner)
{
    if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(owner, "controller")) || owner != owners->child)
        cJSON_DeleteItemFromArray(owners, cJSON_GetArraySize(owners) - 1);
}

static void close_bracket(struct skim *s, bool list, size_t level)
{
    s->broken |= level <= SKIM_LEVELS && is_list(scope_at(s, level)) != list;
    if (!s->broken && scope_at(s, level) == OWNER)
        close_owner(s->nodes[level - 2], s->nodes[level - 1]);
    s->member = NULL;
    s->ended = level == 1;
}

/* A string, or true, false, null or a number. */
static void value(struct skim *s, char c)
{
    const struct skim_member *m = TAKE(s->member);
    const bool fits = m && !s->tokens.odd && s->tokens.len < m->size;

    if (!m)
        return;
    if (m->opens == OTHER && !m->size)
        add(s->nodes[s->tokens.depth - 1], m, cJSON_CreateBool(c == 't'));
    else if (c != '"' || m->opens != OTHER || (fits && !s->tokens.len) ||
             (!fits && m->in != POLICY && m->in != SPEC))
        add(s->nodes[s->tokens.depth - 1], m, cJSON_CreateNull());
    else /* "?": the name of some other controller */
        add(s->nodes[s->tokens.depth - 1], m, cJSON_CreateString(fits ? s->tokens.text : "?"));
}

static void token(struct skim *s, char c, size_t before)
{
    s->broken |= s->ended || (before == 0 && c != '{');
    if (s->broken)
        return;
    if (c == '{' || c == '[')
        open_bracket(s, c == '[', before);
    else if (c == '}' || c == ']')
        close_bracket(s, c == ']', before);
    else if (c == ':')
        s->member = find_member(s);
    else if (c == ',')
        s->member = NULL;
    else
        value(s, c);
}

void skim_feed(struct skim *s, struct sv bytes)
{
    size_t before = s->tokens.depth;

    for (char c; !s->broken && (c = jsontok_next(&s->tokens, &bytes)); before = s->tokens.depth)
        token(s, c, before);
}

bool skim_complete(const struct skim *s)
{
    return s->ended && !s->broken && !s->tokens.inside;
}

cJSON *skim_take(struct skim *s)
{
    return TAKE(s->tree);
}

bool skim_has_names(const cJSON *object)
{
    static const char *const NAMES[] = {"name", "uid", "resourceVersion"};
    const cJSON *meta = json_child(object, "metadata");

    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        if (!json_str(meta, NAMES[i]))
            return false;
    return true;
}

void skim_release(struct skim *s)
{
    cJSON_Delete(skim_take(s));
}
