/* yaml.c - parse YAML by libyaml's events, with bounds on depth, nodes and aliases that libyaml lacks. */
#include "kube/auth/yaml.h"

#include "common/json.h"
#include "common/memory.h"

#include <math.h>
#include <string.h>
#include <yaml.h>

struct reader {
    yaml_parser_t parser;
    int nodes;
};

static void event_delete(yaml_event_t *e)
{
    yaml_event_delete(e);
}

static int bad(const yaml_event_t *e, struct err *err, const char *what)
{
    return err_set(err, ERR_INVALID, "line %zu: %s", e->start_mark.line + 1, what);
}

static int next(struct reader *r, yaml_event_t *e, struct err *err)
{
    if (yaml_parser_parse(&r->parser, e))
        return 0;
    if (!r->parser.problem) /* there is a word on everything else */
        memory_exhausted();
    return err_set(err, ERR_INVALID, "line %zu: %s", r->parser.problem_mark.line + 1, r->parser.problem);
}

static cJSON *scalar(const yaml_event_t *e)
{
    const char *s = (const char *)e->data.scalar.value;
    double number;

    if (e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return cJSON_CreateString(s);
    if (!*s || strcmp(s, "null") == 0 || strcmp(s, "~") == 0)
        return cJSON_CreateNull();
    if (strcmp(s, "true") == 0 || strcmp(s, "false") == 0)
        return cJSON_CreateBool(*s == 't');
    /* Hexadecimal, infinities and the like stay text. */
    if (strspn(s, "+-.0123456789eE") == strlen(s) && sv_f64(sv_from(s), &number) && isfinite(number))
        return cJSON_CreateNumber(number);
    return cJSON_CreateString(s);
}

static int check_node(struct reader *r, const yaml_event_t *e, int depth, struct err *err)
{
    bool anchored = false;
    bool tagged = false;

    if (e->type == YAML_ALIAS_EVENT)
        return bad(e, err, "aliases are not accepted");
    if (e->type == YAML_SCALAR_EVENT) {
        anchored = e->data.scalar.anchor != NULL;
        tagged = e->data.scalar.tag != NULL;
    } else if (e->type == YAML_SEQUENCE_START_EVENT) {
        anchored = e->data.sequence_start.anchor != NULL;
        tagged = e->data.sequence_start.tag != NULL;
    } else if (e->type == YAML_MAPPING_START_EVENT) {
        anchored = e->data.mapping_start.anchor != NULL;
        tagged = e->data.mapping_start.tag != NULL;
    }
    if (anchored || tagged)
        return bad(e, err, "anchors and tags are not accepted");
    if (++r->nodes > YAML_MAX_NODES)
        return bad(e, err, "more than 10000 nodes");
    return depth > YAML_MAX_DEPTH ? bad(e, err, "nested deeper than 32 levels") : 0;
}

static cJSON *node(struct reader *r, const yaml_event_t *e, int depth, struct err *err);

static cJSON *sequence(struct reader *r, int depth, struct err *err)
{
    cleanup_json cJSON *list = cJSON_CreateArray();

    for (;;) {
        __attribute__((cleanup(event_delete))) yaml_event_t e = {0};
        if (next(r, &e, err) < 0)
            return NULL;
        if (e.type == YAML_SEQUENCE_END_EVENT)
            return TAKE(list);
        cJSON *item = node(r, &e, depth + 1, err);
        if (!item)
            return NULL;
        cJSON_AddItemToArray(list, item);
    }
}

static int member(struct reader *r, cJSON *map, const yaml_event_t *key, int depth, struct err *err)
{
    __attribute__((cleanup(event_delete))) yaml_event_t e = {0};
    const char *name = (const char *)key->data.scalar.value;

    if (key->type != YAML_SCALAR_EVENT)
        return bad(key, err, "expected a plain key");
    if (check_node(r, key, depth, err) < 0)
        return -1;
    if (cJSON_GetObjectItemCaseSensitive(map, name))
        return err_set(err, ERR_INVALID, "line %zu: \"%.60s\" is there twice", key->start_mark.line + 1,
                       name);
    if (next(r, &e, err) < 0)
        return -1;
    cJSON *value = node(r, &e, depth, err);
    if (!value)
        return -1;
    cJSON_AddItemToObject(map, name, value);
    return 0;
}

static cJSON *mapping(struct reader *r, int depth, struct err *err)
{
    cleanup_json cJSON *map = cJSON_CreateObject();

    for (;;) {
        __attribute__((cleanup(event_delete))) yaml_event_t e = {0};
        if (next(r, &e, err) < 0)
            return NULL;
        if (e.type == YAML_MAPPING_END_EVENT)
            return TAKE(map);
        if (member(r, map, &e, depth + 1, err) < 0)
            return NULL;
    }
}

static cJSON *node(struct reader *r, const yaml_event_t *e, int depth, struct err *err)
{
    if (check_node(r, e, depth, err) < 0)
        return NULL;
    if (e->type == YAML_SCALAR_EVENT)
        return scalar(e);
    if (e->type == YAML_SEQUENCE_START_EVENT)
        return sequence(r, depth, err);
    if (e->type == YAML_MAPPING_START_EVENT)
        return mapping(r, depth, err);
    bad(e, err, "expected a value");
    return NULL;
}

/* Skip the events that open a stream and a document, or say that nothing follows. */
static int expect(struct reader *r, yaml_event_type_t type, const char *what, struct err *err)
{
    __attribute__((cleanup(event_delete))) yaml_event_t e = {0};

    if (next(r, &e, err) < 0)
        return -1;
    return e.type == type ? 0 : bad(&e, err, what);
}

static cJSON *document(struct reader *r, struct err *err)
{
    __attribute__((cleanup(event_delete))) yaml_event_t e = {0};

    if (expect(r, YAML_STREAM_START_EVENT, "not YAML", err) < 0 ||
        expect(r, YAML_DOCUMENT_START_EVENT, "the document is empty", err) < 0 || next(r, &e, err) < 0)
        return NULL;
    cleanup_json cJSON *tree = node(r, &e, 1, err);
    if (!tree || expect(r, YAML_DOCUMENT_END_EVENT, "not YAML", err) < 0 ||
        expect(r, YAML_STREAM_END_EVENT, "expected one document, got more", err) < 0)
        return NULL;
    return TAKE(tree);
}

cJSON *yaml_parse(struct sv text, struct err *err)
{
    struct reader r = {0};

    if (text.len > YAML_MAX_BYTES) {
        err_set(err, ERR_INVALID, "expected at most %d bytes, got %zu", YAML_MAX_BYTES, text.len);
        return NULL;
    }
    if (!yaml_parser_initialize(&r.parser))
        memory_exhausted();
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text.p, text.len);
    cJSON *tree = document(&r, err);
    yaml_parser_delete(&r.parser);
    return tree;
}
