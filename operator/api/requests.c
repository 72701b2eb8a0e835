/* requests.c - add up the resource requests of pods. */
#include "operator/api/requests.h"

#include "common/sv.h"
#include "operator/api/pod.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const cJSON *member(const cJSON *node, const char *key)
{
    return json_find(node, (const char *[]){key, NULL});
}

double requests_amount(const cJSON *q)
{
    static const struct {
        const char *suffix;
        double times;
    } UNITS[] = {{"n", 1e-9},          {"u", 1e-6},         {"m", 1e-3},    {"k", 1e3},     {"M", 1e6},
                 {"G", 1e9},           {"T", 1e12},         {"P", 1e15},    {"E", 1e18},    {"Ki", 1024},
                 {"Mi", 1024 * 1024.}, {"Gi", 1073741824.}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60}};
    double amount = 0;

    if (cJSON_IsNumber(q))
        return q->valuedouble;
    if (!cJSON_IsString(q))
        return 0;
    struct sv text = sv_trim(sv_from(q->valuestring));
    if (sv_f64(text, &amount))
        return amount;
    for (size_t i = 0; i < ARRAY_LEN(UNITS); i++)
        if (sv_ends(text, UNITS[i].suffix) &&
            sv_f64((struct sv){text.p, text.len - strlen(UNITS[i].suffix)}, &amount))
            return amount * UNITS[i].times;
    return 0;
}

static double *find(struct requests *r, const char *name)
{
    for (int i = 0; i < r->n; i++)
        if (strcmp(r->items[i].name, name) == 0)
            return &r->items[i].amount;
    if (r->n == REQUESTS_MAX)
        return NULL;
    r->items[r->n] = (struct request){.name = name};
    return &r->items[r->n++].amount;
}

static void add(struct requests *to, const cJSON *list, const cJSON *unless_in, int times)
{
    const cJSON *q;

    cJSON_ArrayForEach(q, list)
    {
        double *amount = member(unless_in, q->string) ? NULL : find(to, q->string);
        if (amount)
            *amount += times * requests_amount(q);
    }
}

/* A limit without a request is the request, too. */
static void add_container(struct requests *to, const cJSON *container, int times)
{
    const cJSON *resources = member(container, "resources");
    const cJSON *requests = member(resources, "requests");

    add(to, requests, NULL, times);
    add(to, member(resources, "limits"), requests, times);
}

void requests_add(struct requests *sum, const cJSON *pod_spec, int pods)
{
    const cJSON *c;

    cJSON_ArrayForEach(c, member(pod_spec, "containers")) add_container(sum, c, pods);
    cJSON_ArrayForEach(c, member(pod_spec, "initContainers")) if (pod_is_sidecar(c))
        add_container(sum, c, pods);
}

cJSON *requests_json(const struct requests *sum)
{
    cJSON *o = cJSON_CreateObject();
    char text[64];

    for (int i = 0; i < sum->n; i++) {
        double amount = sum->items[i].amount;
        bool whole = amount == floor(amount);
        snprintf(text, sizeof(text), whole ? "%.0f" : "%.0fm", whole ? amount : ceil(amount * 1000 - 1e-6));
        cJSON_AddStringToObject(o, sum->items[i].name, text);
    }
    return o;
}
