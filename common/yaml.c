/* yaml.c - build a bounded tree from libyaml's events. */
#include "common/yaml.h"
#include "common/text.h"

#include <string.h>
#include <yaml.h>

struct anchor {
    const char *name;
    const struct yaml_tree *node; /* NULL: not complete yet */
    const struct anchor *next;    /* an earlier one */
};

struct reader {
    const char *file;
    struct arena *arena;
    yaml_parser_t parser;
    const struct anchor *anchors; /* of this document */
    int nodes;
    size_t copied; /* bytes of text copied for aliases */
};

static void parser_release(struct reader *r)
{
    yaml_parser_delete(&r->parser);
}
#define cleanup_reader __attribute__((cleanup(parser_release)))
#define cleanup_event __attribute__((cleanup(yaml_event_delete)))

static int next_event(struct reader *r, yaml_event_t *event, struct err *err)
{
    if (yaml_parser_parse(&r->parser, event))
        return 0;
    if (!r->parser.problem) /* libyaml sets `problem` for all errors but lack of memory */
        return err_memory(err, "%s: no memory to read YAML", r->file);
    return err_set(err, ERR_INVALID, "%s:%zu: %s", r->file, r->parser.problem_mark.line + 1,
                   r->parser.problem);
}

static int refuse(const struct reader *r, const yaml_event_t *event, struct err *err, const char *what)
{
    return err_set(err, ERR_INVALID, "%s:%zu: %s", r->file, event->start_mark.line + 1, what);
}

static struct yaml_tree *node_new(struct reader *r, const yaml_event_t *event, struct err *err)
{
    if (r->nodes == YAML_TREE_NODES_MAX) {
        err_set(err, ERR_INVALID, "%s:%zu: more than %d values", r->file, event->start_mark.line + 1,
                YAML_TREE_NODES_MAX);
        return NULL;
    }
    r->nodes++;
    struct yaml_tree *node = arena_new(r->arena, struct yaml_tree);
    node->line = (int)event->start_mark.line + 1;
    return node;
}

static int read_scalar(struct reader *r, const yaml_event_t *event, struct yaml_tree *node, struct err *err)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t len = event->data.scalar.length;

    if (memchr(text, '\0', len))
        return refuse(r, event, err, "a value holds a NUL character");
    node->kind = YAML_TREE_SCALAR;
    node->text = arena_strndup(r->arena, text, len);
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return 0;
}

static int read_node(struct reader *r, const yaml_event_t *event, int depth, struct yaml_tree **ret,
                     struct err *err);

static int too_deep(const struct reader *r, const yaml_event_t *event, struct err *err)
{
    return refuse(r, event, err, "nested too deeply (32 levels at most)");
}

static struct anchor *remember(struct reader *r, const yaml_char_t *name)
{
    struct anchor *a = arena_new(r->arena, struct anchor);

    *a = (struct anchor){.name = arena_strdup(r->arena, (const char *)name), .next = r->anchors};
    r->anchors = a;
    return a;
}

/* ---- aliases: each is replaced by a copy, so that the limits hold for the expanded document */

static const struct yaml_tree *anchored(const struct reader *r, const yaml_event_t *alias, struct err *err)
{
    const char *name = (const char *)alias->data.alias.anchor;
    const struct anchor *a = r->anchors;

    while (a && strcmp(a->name, name) != 0)
        a = a->next;
    if (a && a->node)
        return a->node;
    err_set(err, ERR_INVALID, "%s:%zu: *%.60s: no anchor &%.60s is defined before it", r->file,
            alias->start_mark.line + 1, name, name);
    return NULL;
}

static int count_copied(struct reader *r, const yaml_event_t *alias, const char *text, struct err *err)
{
    r->copied += text ? strlen(text) : 0;
    if (r->copied <= YAML_TREE_BYTES_MAX)
        return 0;
    return err_set(err, ERR_INVALID, "%s:%zu: aliases expand to more than %d bytes", r->file,
                   alias->start_mark.line + 1, YAML_TREE_BYTES_MAX);
}

static struct yaml_tree *copy(struct reader *r, const yaml_event_t *alias, const struct yaml_tree *from,
                              int depth, struct err *err)
{
    if (depth > YAML_TREE_DEPTH_MAX) {
        (void)too_deep(r, alias, err);
        return NULL;
    }
    struct yaml_tree *node = node_new(r, alias, err);
    if (!node || count_copied(r, alias, from->text, err) < 0 || count_copied(r, alias, from->key, err) < 0)
        return NULL;
    *node = (struct yaml_tree){
        .kind = from->kind, .line = from->line, .key = from->key, .text = from->text, .quoted = from->quoted};
    struct yaml_tree **tail = &node->first;
    for (const struct yaml_tree *c = from->first; c; c = c->next, tail = &(*tail)->next)
        if (!(*tail = copy(r, alias, c, depth + 1, err)))
            return NULL;
    return node;
}

static int read_alias(struct reader *r, const yaml_event_t *event, int depth, struct yaml_tree **ret,
                      struct err *err)
{
    const struct yaml_tree *from = anchored(r, event, err);

    *ret = from ? copy(r, event, from, depth, err) : NULL;
    if (!*ret)
        return -1;
    (*ret)->line = (int)event->start_mark.line + 1; /* the line of the alias */
    return 0;
}

/* ---- mappings and sequences */

/* The link to the member with this key, or, if there is none, the link for a new last member. */
static struct yaml_tree **find_key(struct yaml_tree *mapping, const char *key)
{
    struct yaml_tree **at = &mapping->first;

    while (*at && !(key && strcmp((*at)->key, key) == 0))
        at = &(*at)->next;
    return at;
}

static int key_twice(const struct reader *r, const yaml_event_t *event, const char *key,
                     const struct yaml_tree *first, struct err *err)
{
    return err_set(err, ERR_INVALID, "%s:%zu: key \"%.60s\" is given here and in line %d", r->file,
                   event->start_mark.line + 1, key, first->line);
}

/* Read a key of a mapping. It replaces a member of the same key that came from <<. */
static int read_key(struct reader *r, const yaml_event_t *event, struct yaml_tree *mapping, const char **ret,
                    struct err *err)
{
    const bool alias = event->type == YAML_ALIAS_EVENT;
    const struct yaml_tree *key = alias ? anchored(r, event, err) : NULL;
    struct yaml_tree *scalar = arena_new(r->arena, struct yaml_tree);

    if (alias && !key)
        return -1;
    if (event->type == YAML_SCALAR_EVENT) {
        if (read_scalar(r, event, scalar, err))
            return -1;
        if (event->data.scalar.anchor)
            remember(r, event->data.scalar.anchor)->node = scalar;
        key = scalar;
    }
    if (!key || key->kind != YAML_TREE_SCALAR)
        return refuse(r, event, err, "a key must be a plain word");
    struct yaml_tree **first = find_key(mapping, key->text);
    if (*first && !(*first)->merged)
        return key_twice(r, event, key->text, *first, err);
    if (*first)
        *first = (*first)->next;
    *ret = key->text;
    return 0;
}

static bool is_merge(const yaml_event_t *event)
{
    return event->type == YAML_SCALAR_EVENT && event->data.scalar.plain_implicit &&
           strcmp((const char *)event->data.scalar.value, "<<") == 0;
}

/* Add the members of a mapping given after <<; of several mappings the first wins. */
static int merge(struct reader *r, struct yaml_tree *into, const struct yaml_tree *from, int line,
                 struct err *err)
{
    if (from->kind != YAML_TREE_MAPPING)
        return err_set(err, ERR_INVALID, "%s:%d: <<: expected a mapping, or a list of mappings", r->file,
                       line);
    for (const struct yaml_tree *c = from->first; c; c = c->next) {
        struct yaml_tree **at = find_key(into, c->key);
        /* In YAML the mapping's own key wins; in kubectl the last one does. */
        if (*at && !(*at)->merged)
            return err_set(err, ERR_INVALID,
                           "%s:%d: key \"%.60s\" is given in line %d and by <<: write << first", r->file,
                           line, c->key, (*at)->line);
        if (*at)
            continue;
        *at = arena_new(r->arena, struct yaml_tree);
        **at = *c; /* a copy, since an anchor may name the original */
        (*at)->merged = true;
        (*at)->next = NULL;
    }
    return 0;
}

/* Read the value of <<. *at: in: an earlier << of this mapping, or NULL; out: this one. */
static int read_merge(struct reader *r, const yaml_event_t *key, struct yaml_tree *mapping, int depth,
                      struct yaml_tree **at, struct err *err)
{
    cleanup_event yaml_event_t value = {0};

    if (*at)
        return key_twice(r, key, "<<", *at, err);
    if (next_event(r, &value, err) || read_node(r, &value, depth + 1, at, err))
        return -1;
    if ((*at)->kind != YAML_TREE_SEQUENCE)
        return merge(r, mapping, *at, (*at)->line, err);
    for (const struct yaml_tree *c = (*at)->first; c; c = c->next)
        if (merge(r, mapping, c, (*at)->line, err) < 0)
            return -1;
    return 0;
}

/* The children of a mapping or a sequence, up to its end event. */
static int read_children(struct reader *r, struct yaml_tree *parent, int depth, struct err *err)
{
    bool mapping = parent->kind == YAML_TREE_MAPPING;
    yaml_event_type_t end = mapping ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    struct yaml_tree **tail = &parent->first;
    struct yaml_tree *merged = NULL;

    for (;;) {
        cleanup_event yaml_event_t event = {0};
        cleanup_event yaml_event_t value = {0};
        const char *key = NULL;
        struct yaml_tree *child;

        if (next_event(r, &event, err))
            return -1;
        if (event.type == end)
            return 0;
        if (mapping && is_merge(&event)) {
            if (read_merge(r, &event, parent, depth, &merged, err) < 0)
                return -1;
            continue;
        }
        if (mapping && (read_key(r, &event, parent, &key, err) || next_event(r, &value, err)))
            return -1;
        if (read_node(r, mapping ? &value : &event, depth + 1, &child, err))
            return -1;
        child->key = key;
        if (merged) /* it may have appended members or removed some */
            tail = find_key(parent, NULL);
        *tail = child;
        tail = &child->next;
    }
}

/* ---- nodes */

static int read_plain(struct reader *r, const yaml_event_t *event, const yaml_char_t *tag, int depth,
                      struct yaml_tree **ret, struct err *err)
{
    const bool scalar = event->type == YAML_SCALAR_EVENT;
    const char *t = (const char *)tag;
    const bool text = t && scalar && (strcmp(t, YAML_STR_TAG) == 0 || strcmp(t, "!") == 0);

    if (tag && !text)
        return refuse(r, event, err, "tags (!name) are not accepted here, except !!str");
    if (depth > YAML_TREE_DEPTH_MAX)
        return too_deep(r, event, err);
    struct yaml_tree *node = *ret = node_new(r, event, err);
    if (!node)
        return -1;
    if (scalar) {
        const int failed = read_scalar(r, event, node, err);
        node->quoted |= text;
        return failed;
    }
    node->kind = event->type == YAML_MAPPING_START_EVENT ? YAML_TREE_MAPPING : YAML_TREE_SEQUENCE;
    return read_children(r, node, depth, err);
}

static int read_node(struct reader *r, const yaml_event_t *event, int depth, struct yaml_tree **ret,
                     struct err *err)
{
    /* The data of a mapping and of a sequence begins with the same two members. */
    const yaml_char_t *anchor = event->data.scalar.anchor, *tag = event->data.scalar.tag;

    if (event->type == YAML_ALIAS_EVENT)
        return read_alias(r, event, depth, ret, err);
    /* Before the node: a node with an alias of itself is refused. */
    struct anchor *a = anchor ? remember(r, anchor) : NULL;
    if (read_plain(r, event, tag, depth, ret, err) < 0)
        return -1;
    if (a)
        a->node = *ret;
    return 0;
}

static int expect_event(struct reader *r, yaml_event_type_t type, const char *what, struct err *err)
{
    cleanup_event yaml_event_t event = {0};

    if (next_event(r, &event, err))
        return -1;
    return event.type == type ? 0 : refuse(r, &event, err, what);
}

/* A file may begin with a byte order mark of UTF-8, and several joined files have one before each. libyaml
 * would read it as a character of the line. It handles the marks of UTF-16. */
static const char *without_marks(struct arena *a, const char *text, size_t *len)
{
    char *copy = arena_alloc(a, *len + 1);
    size_t n = 0;

    for (size_t i = 0; i < *len; i++) {
        const bool begins = i == 0 || text[i - 1] == '\n';
        if (begins && *len - i >= 3 && memcmp(text + i, TEXT_MARK, 3) == 0)
            i += 2;
        else
            copy[n++] = text[i];
    }
    *len = n;
    return copy;
}

static int begin(struct reader *r, const char *text, size_t len, struct err *err)
{
    if (len > YAML_TREE_BYTES_MAX)
        return err_set(err, ERR_INVALID, "%s: %zu bytes, expected at most %d", r->file, len,
                       YAML_TREE_BYTES_MAX);
    if (!yaml_parser_initialize(&r->parser))
        return err_memory(err, "%s: no memory to read YAML", r->file);
    text = without_marks(r->arena, text, &len);
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)text, len);
    return expect_event(r, YAML_STREAM_START_EVENT, "not YAML", err);
}

/* Read from after the document's start event to after its end event. */
static int read_document(struct reader *r, struct yaml_tree **ret, struct err *err)
{
    cleanup_event yaml_event_t root = {0};

    r->anchors = NULL;
    if (next_event(r, &root, err) || read_node(r, &root, 1, ret, err))
        return -1;
    return expect_event(r, YAML_DOCUMENT_END_EVENT, "expected the end of the document", err);
}

int yaml_tree_parse(const char *file, const char *text, size_t len, struct arena *a, struct yaml_tree **ret,
                    struct err *err)
{
    cleanup_reader struct reader r = {.file = file, .arena = a};
    struct yaml_tree *tree;

    if (begin(&r, text, len, err) ||
        expect_event(&r, YAML_DOCUMENT_START_EVENT, "expected a YAML document, found none", err) ||
        read_document(&r, &tree, err) ||
        expect_event(&r, YAML_STREAM_END_EVENT, "expected one YAML document, found another", err))
        return -1;
    *ret = tree;
    return 0;
}

int yaml_documents(const char *file, const char *text, size_t len, struct arena *a, struct yaml_tree **ret,
                   struct err *err)
{
    cleanup_reader struct reader r = {.file = file, .arena = a};
    struct yaml_tree *first = NULL;
    struct yaml_tree **tail = &first;

    if (begin(&r, text, len, err))
        return -1;
    for (;;) {
        cleanup_event yaml_event_t event = {0};
        struct yaml_tree *tree;
        if (next_event(&r, &event, err))
            return -1;
        if (event.type == YAML_STREAM_END_EVENT)
            break;
        if (read_document(&r, &tree, err))
            return -1;
        if (yaml_is_null(tree))
            continue;
        *tail = tree;
        tail = &tree->next;
    }
    *ret = first;
    return 0;
}
