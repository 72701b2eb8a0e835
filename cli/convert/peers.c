/* peers.c - name the places where a job calls its pods by names that only Kubeflow gives them. */
#include "cli/convert/parts.h"

#include <ctype.h>
#include <string.h>

/* The pods of one replicaSpec. */
struct peers {
    struct conversion *c;
    const char *job, *type;
    const char *stem; /* what stands before the index, there */
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

static void look_at_container(const struct peers *p, const struct json_at *container)
{
    static const char *const WORDS[] = {"command", "args"};
    const struct json_at env = json_member(container, "env");
    const cJSON *node;

    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++) {
        const struct json_at list = json_member(container, WORDS[i]);
        int k = 0;
        cJSON_ArrayForEach(node, list.node)
        {
            const struct json_at word = json_item(&list, node, k++);
            look_at(p, &word);
        }
    }
    int k = 0;
    cJSON_ArrayForEach(node, env.node)
    {
        const struct json_at variable = json_item(&env, node, k++);
        const struct json_at value = json_member(&variable, "value");
        look_at(p, &value);
    }
}

static void look_at_pods(const struct peers *p, const struct json_at *replica)
{
    static const char *const LISTS[] = {"initContainers", "containers"};
    const struct json_at template = json_member(replica, "template");
    const struct json_at spec = json_member(&template, "spec");
    const cJSON *node;

    for (size_t i = 0; i < ARRAY_LEN(LISTS); i++) {
        const struct json_at list = json_member(&spec, LISTS[i]);
        int k = 0;
        cJSON_ArrayForEach(node, list.node)
        {
            const struct json_at container = json_item(&list, node, k++);
            look_at_container(p, &container);
        }
    }
}

void convert_peers(struct conversion *c)
{
    const struct json_at spec = json_root(c->spec, "spec");
    const struct json_at list = json_member(&spec, "replicaSpecs");
    const bool jobset = strcmp(json_str(c->root->node, "kind"), "TrainJob") == 0;
    const char *job = json_str(c->metadata, "name");
    const cJSON *node, *other;
    int i = 0;

    cJSON_ArrayForEach(node, list.node)
    {
        const struct json_at replica = json_item(&list, node, i++);
        cJSON_ArrayForEach(other, list.node)
        {
            const char *type = json_str(other, "type");
            struct peers p = {.c = c, .job = job, .type = type};
            p.stem = arena_printf(c->arena, "%s-%s-%s", job, type, jobset ? "0-" : "");
            if (job && type)
                look_at_pods(&p, &replica);
        }
    }
}
