/* test_errors.c - one kind of request fails in one way for two minutes, each time it is sent: the operator does not
 * crash and does not hammer, reports the refusal in the job's status, and when the API server is well again the job
 * comes to the end that it would have come to.
 *
 * usage: test_errors [scenario [trouble]]
 */
#include "converge.h"
#include "test.h"

#include <stdio.h>

enum { LASTS_MS = 120000, NAME_BYTES = 48 };

static const struct verb {
    const char *scenario, *name, *method, *path_part;
    int operators; /* who share a lease */
    bool is_told;  /* a refusal of it has to stand in the status */
} VERBS[] = {
    {.scenario = "success", .name = "list", .method = "LIST"},
    {.scenario = "killed-once", .name = "watch", .method = "WATCH"},
    {.scenario = "killed-once",
     .name = "create-pod",
     .method = "POST",
     .path_part = "/pods",
     .is_told = true},
    {.scenario = "success",
     .name = "create-service",
     .method = "POST",
     .path_part = "/services",
     .is_told = true},
    {.scenario = "killed-once", .name = "create-event", .method = "POST", .path_part = "/events"},
    {.scenario = "killed-once", .name = "patch-status", .method = "PATCH", .path_part = "/status"},
    {.scenario = "killed-once", .name = "delete-pod", .method = "DELETE", .path_part = "/pods/"},
    {.scenario = "ttl", .name = "delete-job", .method = "DELETE", .path_part = "/" TRAINJOB_PLURAL "/"},
    {.scenario = "tensorboard", .name = "create-deployment", .method = "POST", .path_part = "/deployments"},
    {.scenario = "tensorboard-switched",
     .name = "patch-deployment",
     .method = "PATCH",
     .path_part = "/deployments/"},
    {.scenario = "success", .name = "read-lease", .method = "GET", .path_part = "/leases/", .operators = 2},
    {.scenario = "success", .name = "write-lease", .method = "PUT", .path_part = "/leases/", .operators = 2},
};

static const struct {
    const char *name;
    struct fake_fault_plan plan;
} FAULTS[] = {
    {"401", {.fault = FAKE_STATUS, .status = 401}},
    {"403", {.fault = FAKE_STATUS, .status = 403}},
    {"404", {.fault = FAKE_STATUS, .status = 404}},
    {"409", {.fault = FAKE_STATUS, .status = 409}},
    {"410", {.fault = FAKE_STATUS, .status = 410}},
    {"422", {.fault = FAKE_STATUS, .status = 422}},
    {"429", {.fault = FAKE_STATUS, .status = 429, .retry_after_s = CONVERGE_RETRY_AFTER_S}},
    {"500", {.fault = FAKE_STATUS, .status = 500}},
    {"503", {.fault = FAKE_STATUS, .status = 503, .retry_after_s = CONVERGE_RETRY_AFTER_S}},
    {"timeout-before", {.fault = FAKE_HANG_BEFORE}},
    {"timeout-after", {.fault = FAKE_HANG_AFTER}},
    {"reset-in-body", {.fault = FAKE_RESET_BODY}},
    {"half-the-json", {.fault = FAKE_GARBAGE_BODY}},
    {"slow-drip", {.fault = FAKE_DRIP_BODY}},
};

static struct trouble TROUBLES[ARRAY_LEN(VERBS) * ARRAY_LEN(FAULTS)];
static char NAMES[ARRAY_LEN(TROUBLES)][NAME_BYTES];

static void name_troubles(void)
{
    for (size_t i = 0; i < ARRAY_LEN(TROUBLES); i++) {
        const struct verb *v = &VERBS[i / ARRAY_LEN(FAULTS)];
        struct trouble *t = &TROUBLES[i];
        snprintf(NAMES[i], NAME_BYTES, "%s/%s", v->name, FAULTS[i % ARRAY_LEN(FAULTS)].name);
        *t = (struct trouble){.name = NAMES[i],
                              .class = "F4",
                              .counting = COUNTS_ONCE,
                              .fault = FAULTS[i % ARRAY_LEN(FAULTS)].plan,
                              .lasts_ms = LASTS_MS,
                              .operators = v->operators,
                              .only = v->scenario};
        bool refused = t->fault.status == 403 || t->fault.status == 422;
        bool effect = t->fault.fault != FAKE_STATUS && t->fault.fault != FAKE_HANG_BEFORE;
        if (v->is_told && !effect && t->fault.status != 409) /* which is looked into first */
            t->told = refused ? "a fault was asked for" : "CreateFailed";
        t->fault.method = v->method;
        t->fault.path_part = v->path_part;
    }
}

static void endure(void **state)
{
    struct converge_row *row = *state;
    struct trouble t = *row->trouble;
    struct ending e;

    if ((row->trouble - TROUBLES) % row->step != 0) /* so each verb, and each fault, is met */
        skip();
    struct ending untroubled = converge_untroubled(row->scenario, t.operators);
    if (!converge_case(row, &t, &untroubled, &e))
        fail_msg("%s: nothing of the kind was asked", t.name);
    print_message("%s, %s: %d requests, %d meanwhile: %s\n", row->scenario->name, t.name, e.requests,
                  e.meanwhile, e.text);
}

int main(int argc, char **argv)
{
    name_troubles();
    return CONVERGE_MAIN(argc, argv, TROUBLES, endure);
}
