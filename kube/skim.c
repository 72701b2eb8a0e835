/* skim.c - extract namespace, name, UID and a few other strings from a JSON text without building a tree. */
#include "kube/skim.h"

#include "common/cleanup.h"
#include "common/json.h"

#include <stddef.h>
#include <string.h>

/* What a bracket at one of the first levels has opened. */
enum place { OTHER_LIST, OTHER, EVENT, OBJECT, METADATA, OWNERS, OWNER, SPEC, POLICY, STATUS };

struct member {
    enum place in;
    const char *key;
    enum place opens; /* OTHER: it is a string */
    size_t at, size;
};

#define TEXT(field) offsetof(struct skim, field), sizeof(((struct skim *)NULL)->field)
static const struct member MEMBERS[] = {
    {EVENT, "type", OTHER, TEXT(type)},
    {EVENT, "object", OBJECT, 0, 0},
    {OBJECT, "metadata", METADATA, 0, 0},
    {OBJECT, "status", STATUS, 0, 0},
    {METADATA, "namespace", OTHER, TEXT(ns)},
    {METADATA, "name", OTHER, TEXT(name)},
    {METADATA, "uid", OTHER, TEXT(uid)},
    {METADATA, "resourceVersion", OTHER, TEXT(version)},
    {METADATA, "ownerReferences", OWNERS, 0, 0},
    {OWNER, "apiVersion", OTHER, TEXT(owner.api_version)},
    {OWNER, "kind", OTHER, TEXT(owner.kind)},
    {OWNER, "name", OTHER, TEXT(owner.name)},
    {OWNER, "uid", OTHER, TEXT(owner.uid)},
    {STATUS, "reason", OTHER, TEXT(reason)},
    {OWNER, "controller", OTHER, 0, 0}, /* true or not */
    {METADATA, "deletionTimestamp", OTHER, TEXT(deletion)},
    {OBJECT, "spec", SPEC, 0, 0},
    {SPEC, "runPolicy", POLICY, 0, 0},
    {POLICY, "managedBy", OTHER, TEXT(manager)},
};

void skim_init(struct skim *s, bool event)
{
    *s = (struct skim){.event = event};
}

static enum place place_now(const struct skim *s)
{
    return s->level >= 1 && s->level <= SKIM_LEVELS ? (enum place)s->places[s->level - 1] : OTHER_LIST;
}

static bool is_list(enum place p)
{
    return p == OTHER_LIST || p == OWNERS;
}

/* The member that the last key names, unless it came before; NULL: none of ours. */
static const struct member *member_now(struct skim *s)
{
    for (size_t i = 0; i < ARRAY_LEN(MEMBERS); i++) {
        const struct member *m = &MEMBERS[i];
        if (m->in != place_now(s) || s->key_len != strlen(m->key) || memcmp(s->key, m->key, s->key_len) != 0)
            continue;
        unsigned *seen = m->in == OWNER ? &s->owner.seen : &s->seen;
        bool again = *seen & 1U << i;
        *seen |= 1U << i;
        return again ? NULL : m;
    }
    return NULL;
}

static enum place opened(struct skim *s, bool list)
{
    enum place in = place_now(s);

    if (s->level == 0)
        return list ? OTHER_LIST : s->event ? EVENT : OBJECT;
    if (in == OWNERS && !list) {
        s->owner = (struct skim_owner){0};
        return OWNER;
    }
    const struct member *m = is_list(in) ? NULL : member_now(s);
    enum place p = m ? m->opens : OTHER;
    return is_list(p) == list ? p : list ? OTHER_LIST : OTHER;
}

static void open_bracket(struct skim *s, bool list)
{
    enum place p = s->level < SKIM_LEVELS ? opened(s, list) : OTHER;

    if (s->level < SKIM_LEVELS)
        s->places[s->level] = (unsigned char)p;
    s->level++;
    s->at_key = !list;
}

static void close_bracket(struct skim *s, bool list)
{
    enum place p = place_now(s);

    s->broken |= s->level == 0 || (s->level <= SKIM_LEVELS && is_list(p) != list);
    if (s->broken)
        return;
    if (p == OWNER && s->owner.controller && !s->controller.controller)
        s->controller = s->owner;
    s->level--;
    s->at_key = false;
    s->ended = s->level == 0;
}

static void open_string(struct skim *s)
{
    const struct member *m = NULL;

    s->in_string = true;
    s->to = NULL;
    if (s->at_key)
        s->key_len = 0;
    else if (!is_list(place_now(s)))
        m = member_now(s);
    if (!m || !m->size)
        return;
    s->to = (char *)s + m->at;
    s->to_size = m->size;
    s->to_len = 0;
    s->to_spoiled = false;
}

static void close_string(struct skim *s)
{
    s->in_string = false;
    if (s->to)
        s->to[s->to_spoiled ? 0 : s->to_len] = '\0';
    if (s->to == s->manager && s->to_spoiled) /* whoever it is, it is somebody else */
        memcpy(s->manager, "?", 2);
    s->to = NULL;
}

static void string_byte(struct skim *s, char c)
{
    if (s->escaped) {
        s->escaped = false;
        return;
    }
    if (c == '"') {
        close_string(s);
        return;
    }
    s->escaped = c == '\\';
    if (s->at_key) { /* one with an escape is no key of ours */
        if (s->key_len < sizeof(s->key))
            s->key[s->key_len++] = s->escaped ? '\0' : c;
    } else if (s->to) {
        s->to_spoiled |= s->escaped || c == '\0' || s->to_len + 1 == s->to_size;
        if (!s->to_spoiled)
            s->to[s->to_len++] = c;
    }
}

/* The first byte of a value that is neither text nor brackets. */
static void scalar(struct skim *s, char c)
{
    const struct member *m = member_now(s);

    if (m && m->in == OWNER && strcmp(m->key, "controller") == 0)
        s->owner.controller = c == 't';
}

static void plain_byte(struct skim *s, char c)
{
    if ((unsigned char)c <= ' ') /* as cJSON has it */
        return;
    s->broken |= s->ended || (s->level == 0 && c != '{');
    if (s->broken)
        return;
    if (c == '{' || c == '[')
        open_bracket(s, c == '[');
    else if (c == '}' || c == ']')
        close_bracket(s, c == ']');
    else if (c == '"')
        open_string(s);
    else if (c == ',')
        s->at_key = true; /* in a list it is no harm */
    else if (s->at_value && !is_list(place_now(s)))
        scalar(s, c);
    s->at_key = s->at_key && c != ':';
    s->at_value = c == ':';
}

void skim_feed(struct skim *s, struct sv bytes)
{
    for (size_t i = 0; i < bytes.len && !s->broken; i++) {
        if (s->in_string)
            string_byte(s, bytes.p[i]);
        else
            plain_byte(s, bytes.p[i]);
    }
}

bool skim_complete(const struct skim *s)
{
    return s->ended && !s->broken;
}

static void add(cJSON *to, const char *key, const char *text)
{
    if (text[0])
        cJSON_AddStringToObject(to, key, text);
}

static void add_controller(cJSON *meta, const struct skim_owner *o)
{
    if (!o->controller)
        return;
    cJSON *owner = cJSON_CreateObject();
    add(owner, "apiVersion", o->api_version);
    add(owner, "kind", o->kind);
    add(owner, "name", o->name);
    add(owner, "uid", o->uid);
    cJSON_AddBoolToObject(owner, "controller", true);
    cJSON_AddItemToArray(cJSON_AddArrayToObject(meta, "ownerReferences"), owner);
}

cJSON *skim_object(const struct skim *s)
{
    if (!s->name[0] || !s->uid[0] || !s->version[0])
        return NULL;
    cJSON *object = cJSON_CreateObject();
    cJSON *meta = cJSON_AddObjectToObject(object, "metadata");
    add(meta, "namespace", s->ns);
    add(meta, "name", s->name);
    add(meta, "uid", s->uid);
    add(meta, "resourceVersion", s->version);
    add(meta, "deletionTimestamp", s->deletion);
    add_controller(meta, &s->controller);
    if (s->manager[0])
        add(cJSON_AddObjectToObject(cJSON_AddObjectToObject(object, "spec"), "runPolicy"), "managedBy",
            s->manager);
    if (s->reason[0])
        add(cJSON_AddObjectToObject(object, "status"), "reason", s->reason);
    return object;
}
