/* yaml.c - build a bounded tree from libyaml's events. */
#include "common/yaml.h"

#include <string.h>
#include <yaml.h>

struct reader {
    const char *file;
    struct arena *arena;
    yaml_parser_t parser;
    int nodes;
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
    if (!r->parser.problem) /* there is a word on everything else */
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

static int read_key(struct reader *r, const yaml_event_t *event, const struct yaml_tree *mapping, char **ret,
                    struct err *err)
{
    if (event->type != YAML_SCALAR_EVENT)
        return refuse(r, event, err, "a key must be a plain word");
    struct yaml_tree scalar;
    if (read_scalar(r, event, &scalar, err))
        return -1;
    for (const struct yaml_tree *c = mapping->first; c; c = c->next)
        if (strcmp(c->key, scalar.text) == 0)
            return err_set(err, ERR_INVALID, "%s:%zu: key \"%.60s\" stands here and in line %d", r->file,
                           event->start_mark.line + 1, scalar.text, c->line);
    *ret = (char *)scalar.text;
    return 0;
}

/* The children of a mapping or a sequence, up to its end event. */
static int read_children(struct reader *r, struct yaml_tree *parent, int depth, struct err *err)
{
    bool mapping = parent->kind == YAML_TREE_MAPPING;
    yaml_event_type_t end = mapping ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    struct yaml_tree **tail = &parent->first;

    for (;;) {
        cleanup_event yaml_event_t event = {0};
        cleanup_event yaml_event_t value = {0};
        char *key = NULL;
        struct yaml_tree *child;

        if (next_event(r, &event, err))
            return -1;
        if (event.type == end)
            return 0;
        if (mapping && (read_key(r, &event, parent, &key, err) || next_event(r, &value, err)))
            return -1;
        if (read_node(r, mapping ? &value : &event, depth + 1, &child, err))
            return -1;
        child->key = key;
        *tail = child;
        tail = &child->next;
    }
}

static int read_node(struct reader *r, const yaml_event_t *event, int depth, struct yaml_tree **ret,
                     struct err *err)
{
    const yaml_char_t *anchor = NULL;
    const yaml_char_t *tag = NULL;

    if (event->type == YAML_ALIAS_EVENT)
        return refuse(r, event, err, "aliases (*name) are not accepted here: write the value out");
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    } else {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    }
    if (anchor || tag)
        return refuse(r, event, err, "anchors (&name) and tags (!name) are not accepted here");
    if (depth > YAML_TREE_DEPTH_MAX)
        return refuse(r, event, err, "nested too deeply (32 levels at most)");

    struct yaml_tree *node = node_new(r, event, err);
    if (!node)
        return -1;
    *ret = node;
    if (event->type == YAML_SCALAR_EVENT)
        return read_scalar(r, event, node, err);
    node->kind = event->type == YAML_MAPPING_START_EVENT ? YAML_TREE_MAPPING : YAML_TREE_SEQUENCE;
    return read_children(r, node, depth, err);
}

static int expect_event(struct reader *r, yaml_event_type_t type, const char *what, struct err *err)
{
    cleanup_event yaml_event_t event = {0};

    if (next_event(r, &event, err))
        return -1;
    return event.type == type ? 0 : refuse(r, &event, err, what);
}

static int begin(struct reader *r, const char *text, size_t len, struct err *err)
{
    if (len > YAML_TREE_BYTES_MAX)
        return err_set(err, ERR_INVALID, "%s: %zu bytes, expected at most %d", r->file, len,
                       YAML_TREE_BYTES_MAX);
    if (!yaml_parser_initialize(&r->parser))
        return err_memory(err, "%s: no memory to read YAML", r->file);
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)text, len);
    yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
    return expect_event(r, YAML_STREAM_START_EVENT, "not YAML", err);
}

/* From behind the document's start to behind its end. */
static int read_document(struct reader *r, struct yaml_tree **ret, struct err *err)
{
    cleanup_event yaml_event_t root = {0};

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
