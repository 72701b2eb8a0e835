/* peers.c - report where a job calls its pods by names that only Kubeflow gives them. */
#include "cli/convert/parts.h"

#include <ctype.h>
#include <string.h>

/* The pods of one replicaSpec. */
struct peers {
    struct conversion *c;
    const char *job, *type;
    const char *stem; /* the name in Kubeflow, before its index */
};

static bool in_name(char ch)
{
    return isalnum((unsigned char)ch) || ch == '-' || ch == '_';
}

/* Whether `at`, within `text`, is a whole name of theirs; *digits: how long its index is. The name that a pod has here may begin
 * with it. */
static bool is_theirs(const struct peers *p, const char *text, const char *at, size_t *digits)
{
    const char *index = at + strlen(p->stem);
    const char *ours = arena_printf(p->c->arena, ".%s-rdzv", p->job);

    *digits = strspn(index, "0123456789");
    return (at == text || (!in_name(at[-1]) && at[-1] != '.')) && *digits > 0 && *digits < 5 &&
           (index[0] != '0' || *digits == 1) && !in_name(index[*digits]) &&
           strncmp(index + *digits, ours, strlen(ours)) != 0;
}

static void look_at(const struct peers *p, const struct json_at *at)
{
    const char *text = cJSON_IsString(at->node) ? at->node->valuestring : "";
    size_t digits;

    for (const char *s = text; (s = strstr(s, p->stem)); s++)
        if (is_theirs(p, text, s, &digits))
            losses_add(p->c->losses, at,
                       "%s%.*s is a name that Kubeflow gives: here it is %s-%s-%.*s.%s-rdzv", p->stem,
                       (int)digits, s + strlen(p->stem), p->job, p->type, (int)digits, s + strlen(p->stem),
                       p->job);
}

/* Every command, also of a probe, every argument and every value of a variable. */
static void look_below(const struct peers *p, const struct json_at *at, bool wanted)
{
    static const char *const KEYS[] = {"command", "args", "value"};
    const cJSON *node;
    int i = 0;

    if (wanted)
        look_at(p, at);
    cJSON_ArrayForEach(node, at->node)
    {
        const bool is_item = cJSON_IsArray(at->node);
        const struct json_at below = is_item ? json_item(at, node, i++) : json_member(at, node->string);
        bool of_words = is_item && wanted;
        for (size_t k = 0; k < ARRAY_LEN(KEYS) && !is_item; k++)
            of_words |= strcmp(node->string, KEYS[k]) == 0;
        look_below(p, &below, of_words);
    }
}

void convert_peers(struct conversion *c)
{
    const struct json_at spec = json_root(c->spec, "spec");
    const struct json_at list = json_member(&spec, "replicaSpecs");
    const bool jobset = strcmp(json_str(c->object, "kind"), "TrainJob") == 0;
    const char *job = json_str(c->metadata, "name");
    const cJSON *node, *other;
    int i = 0;

    cJSON_ArrayForEach(node, list.node)
    {
        const struct json_at replica = json_item(&list, node, i++);
        const struct json_at template = json_member(&replica, "template");
        cJSON_ArrayForEach(other, list.node)
        {
            const char *type = json_str(other, "type");
            struct peers p = {.c = c, .job = job, .type = type};
            p.stem = arena_printf(c->arena, "%s-%s-%s", job, type, jobset ? "0-" : "");
            if (job && type)
                look_below(&p, &template, false);
        }
    }
}
