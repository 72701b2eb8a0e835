/* requests.c - add up the resource requests of pods. */
#include "operator/api/requests.h"

#include "common/sv.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const cJSON *member(const cJSON *node, const char *key)
{
    return json_find(node, (const char *[]){key, NULL});
}

/* 0: not a quantity. */
static double amount_of(const cJSON *q)
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

static void add(struct requests *to, const cJSON *list, const cJSON *unless_in)
{
    const cJSON *q;

    cJSON_ArrayForEach(q, list)
    {
        double *amount = member(unless_in, q->string) ? NULL : find(to, q->string);
        if (amount)
            *amount += amount_of(q);
    }
}

/* A limit without a request is the request, too. */
static void add_container(struct requests *to, const cJSON *container)
{
    const cJSON *resources = member(container, "resources");
    const cJSON *requests = member(resources, "requests");

    add(to, requests, NULL);
    add(to, member(resources, "limits"), requests);
}

static void raise(struct requests *to, const struct requests *to_at_least)
{
    for (int i = 0; i < to_at_least->n; i++) {
        double *amount = find(to, to_at_least->items[i].name);
        if (amount && *amount < to_at_least->items[i].amount)
            *amount = to_at_least->items[i].amount;
    }
}

void requests_add(struct requests *sum, const cJSON *pod_spec, int pods)
{
    struct requests pod = {0}, sidecars = {0}, peak = {0};
    const cJSON *c;

    cJSON_ArrayForEach(c, member(pod_spec, "initContainers"))
    {
        const char *policy = json_str(c, "restartPolicy");
        struct requests now = sidecars;
        add_container(&now, c);
        raise(&peak, &now);
        if (policy && strcmp(policy, "Always") == 0)
            sidecars = now;
    }
    pod = sidecars;
    cJSON_ArrayForEach(c, member(pod_spec, "containers")) add_container(&pod, c);
    raise(&pod, &peak);
    add(&pod, member(pod_spec, "overhead"), NULL);
    for (int i = 0; i < pod.n; i++) {
        double *amount = find(sum, pod.items[i].name);
        if (amount)
            *amount += pods * pod.items[i].amount;
    }
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
