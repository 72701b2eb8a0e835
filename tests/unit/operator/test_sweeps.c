/* test_sweeps.c - with one fault at any point, a job comes to the same end with the same children, and not much later. Each story
 * runs again with the fault at the first, the second, the third point, until a run ends before the fault's point.
 *
 *   converge   a request fails, or the operator dies there
 *   sockets    the same over real HTTP, for libcurl's errors when a connection breaks, a body ends early or an error has a
 *              body. Nothing hangs here: that would take real seconds
 *   notices    a watch event is lost with its stream, sent twice, late, merged with the next, or replaced by a 410
 *   takeover   two operators and one Lease: the leader dies, hangs or gets SIGTERM, and what it had sent arrives late
 *   stale      an API server that fell behind: after a restart, or when watches begin again, the watch of one kind sends nothing
 *              newer than some changes ago, for a minute. One thing is required of the API server: that no list is old (it promises
 *              that, kube/watcher.h)
 *   pairs      two troubles in one run, drawn by chance: two requests, or a request and a watch event. A failure names the seed
 *   shapes     a watch's bytes are led up to, cut short or replaced by something that a server, a proxy or a bad day may send. In
 *              short each third event of a few stories is struck, and every event of every story by the shape that shows old states
 *
 * usage: test_sweeps SWEEP [scenario [trouble [seed]]]
 */
#include "converge.h"
#include "faults.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENOUGH = 5, ENOUGH_TAKEOVERS = 3 };

/* Late is longer than the controller waits for its cache to show what it wrote (jobmemory.c); very late is longer than any
 * wait of a plan for what others do. */
enum { LATE_MS = 7000, VERY_LATE_MS = 40000 };

static const struct trouble REQUESTS[] = {
    {"conflict", .fault = {.fault = FAKE_STATUS, .status = 409}},
    {"too-many", .fault = {.fault = FAKE_STATUS, .status = 429, .retry_after_s = CONVERGE_RETRY_AFTER_S}},
    {"internal-error", .fault = {.fault = FAKE_STATUS, .status = 500}},
    {"unavailable", .fault = {.fault = FAKE_STATUS, .status = 503, .retry_after_s = CONVERGE_RETRY_AFTER_S}},
    {"drop-before", .fault = {.fault = FAKE_DROP_BEFORE}},
    {"drop-after", .fault = {.fault = FAKE_DROP_AFTER}},
    {"timeout-before", .fault = {.fault = FAKE_HANG_BEFORE}},
    {"timeout-after", .fault = {.fault = FAKE_HANG_AFTER}},
    {"reset-body", .fault = {.fault = FAKE_RESET_BODY}},
    {"garbage-body", .fault = {.fault = FAKE_GARBAGE_BODY}},
    {"killed-before", "F1", COUNTS_WRITES, .fault = {.fault = FAKE_HANG_BEFORE}, .follows = FOLLOWS_CRASH},
    {"killed-after", "F1", COUNTS_WRITES, .fault = {.fault = FAKE_HANG_AFTER}, .follows = FOLLOWS_CRASH},
    {"killed-answered", "F1", COUNTS_WRITES, .crash_at = 1},
};

static const struct trouble SOCKETS[] = {
    {"unavailable", .fault = {.fault = FAKE_STATUS, .status = 503, .retry_after_s = 1}, .sockets = true},
    {"drop-before", .fault = {.fault = FAKE_DROP_BEFORE}, .sockets = true},
    {"drop-after", .fault = {.fault = FAKE_DROP_AFTER}, .sockets = true},
    {"reset-body", .fault = {.fault = FAKE_RESET_BODY}, .sockets = true},
    {"killed-answered", .crash_at = 1, .sockets = true},
};

static void at_requests(void **state)
{
    struct converge_row *row = *state;
    struct trouble t = *row->trouble;

    converge_sweep(row, &t, t.crash_at ? &t.crash_at : &t.fault.request, 1, ENOUGH);
}

static const struct trouble NOTICES[] = {
    {"lost-with-stream", "F3", COUNTS_EVENTS, .tamper = {.how = FAKE_CUT_BEFORE}},
    {"stream-ends-after", .tamper = {.how = FAKE_CUT_AFTER}},
    {"told-twice", .tamper = {.how = FAKE_REPEAT}},
    {"late", .tamper = {.how = FAKE_LATE, .late_ms = LATE_MS}},
    {"very-late", .tamper = {.how = FAKE_LATE, .late_ms = VERY_LATE_MS}},
    {"merged", "F3", COUNTS_EVENTS, .tamper = {.how = FAKE_MERGE, .late_ms = LATE_MS}},
    {"gone-in-stream", "F3", COUNTS_EVENTS, .tamper = {.how = FAKE_GONE_STREAM}},
    {"gone-at-request", "F3", COUNTS_EVENTS, .tamper = {.how = FAKE_GONE_REQUEST}},
};

static void at_events(void **state)
{
    struct converge_row *row = *state;
    struct trouble t = *row->trouble;

    converge_sweep(row, &t, &t.tamper.event, 1, ENOUGH);
}

static const struct trouble TAKEOVERS[] = {
    {"dies-before", .fault = {.fault = FAKE_HANG_BEFORE}, .follows = FOLLOWS_TAKEOVER},
    {"dies-after", .fault = {.fault = FAKE_HANG_AFTER}, .follows = FOLLOWS_TAKEOVER},
    {"arrives-late", .fault = {.fault = FAKE_HANG_BEFORE}, .follows = FOLLOWS_CUT_OFF, .ghosts = true},
    {"cut-off-after", .fault = {.fault = FAKE_HANG_AFTER}, .follows = FOLLOWS_CUT_OFF},
    {"told-to-stop", .fault = {.fault = FAKE_NOTHING}, .follows = FOLLOWS_HANDOVER},
};

static void at_writes_of_two(void **state)
{
    struct converge_row *row = *state;
    struct trouble t = *row->trouble;

    t.operators = 2;
    t.fault.writes = true;
    converge_sweep(row, &t, &t.fault.request, 1, ENOUGH_TAKEOVERS);
}

/* ---- stale */

#define STALE(kind) .class = "F2", .counting = COUNTS_ONCE, .crash_at = 1, .stale_kind = kind

static const struct trouble STALES[] = {
    {"jobs-after-a-restart", STALE(TRAINJOB_PLURAL)},
    {"pods-after-a-restart", STALE("pods")},
    {"services-after-a-restart", STALE("services")},
    {"deployments-after-a-restart", STALE("deployments")},
    {"lease-after-a-death", STALE("leases"), .operators = 2},
    {"jobs-after-a-reconnect", STALE(TRAINJOB_PLURAL), .stale_reconnect = true},
    {"pods-after-a-reconnect", STALE("pods"), .stale_reconnect = true},
    {"services-after-a-reconnect", STALE("services"), .stale_reconnect = true},
    {"deployments-after-a-reconnect", STALE("deployments"), .stale_reconnect = true},
    {"lease-for-both", STALE("leases"), .operators = 2, .stale_reconnect = true},
};

static void at_lags(void **state)
{
    /* How far behind: the last change, the last three, all. In short, each third request, and half way between the others. */
    static const int LAGS[] = {1, 3, 1000};
    struct converge_row *row = *state;
    bool full = faults_in_full();

    for (size_t i = full ? 0 : 1; i < (full ? ARRAY_LEN(LAGS) : 2); i++) {
        struct trouble t = *row->trouble;
        t.stale_by = LAGS[i];
        t.ghosts = converge_may_leave_ghosts(row->scenario);
        converge_sweep(row, &t, &t.crash_at, full ? 1 : 3, ENOUGH);
    }
}

/* ---- pairs */

enum { DRAWS = 100 };

static const struct trouble FAULTS[] = {
    {.fault = {.fault = FAKE_STATUS, .status = 409}},
    {.fault = {.fault = FAKE_STATUS, .status = 429, .retry_after_s = CONVERGE_RETRY_AFTER_S}},
    {.fault = {.fault = FAKE_STATUS, .status = 500}},
    {.fault = {.fault = FAKE_DROP_BEFORE}},
    {.fault = {.fault = FAKE_DROP_AFTER}},
    {.fault = {.fault = FAKE_HANG_BEFORE}},
    {.fault = {.fault = FAKE_HANG_AFTER}},
    {.fault = {.fault = FAKE_RESET_BODY}},
    {.fault = {.fault = FAKE_HANG_BEFORE}, .follows = FOLLOWS_CRASH},
    {.fault = {.fault = FAKE_HANG_AFTER}, .follows = FOLLOWS_CRASH},
};

static const enum fake_tampering TAMPERINGS[] = {
    FAKE_CUT_BEFORE, FAKE_CUT_AFTER, FAKE_REPEAT, FAKE_LATE, FAKE_MERGE, FAKE_GONE_STREAM,
};

/* xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled" (2016). */
static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (*state * UINT64_C(2685821657736338717) >> 33) % below;
}

static void two_requests(struct trouble *t, uint64_t *state, const struct ending *untroubled)
{
    const struct trouble *first = &FAULTS[draw(state, ARRAY_LEN(FAULTS))];
    const struct trouble *second = &FAULTS[draw(state, ARRAY_LEN(FAULTS))];

    t->fault = first->fault;
    t->follows = first->follows;
    t->fault.request = 1 + (int)draw(state, (uint64_t)untroubled->requests);
    t->then = second->fault;
    t->then_follows = second->follows;
    t->then.request = 1 + (int)draw(state, (uint64_t)untroubled->requests);
}

static void request_and_event(struct trouble *t, uint64_t *state, const struct ending *untroubled)
{
    two_requests(t, state, untroubled);
    t->then.request = 0;
    t->tamper.how = TAMPERINGS[draw(state, ARRAY_LEN(TAMPERINGS))];
    t->tamper.event = 1 + (int)draw(state, (uint64_t)untroubled->events);
    t->tamper.late_ms = LATE_MS;
}

static void at_random(void **state)
{
    const struct converge_row *row = *state;
    uint64_t seed = row->seed ? strtoull(row->seed, NULL, 10) : 20261121;
    uint64_t chance = seed ? seed : 1; /* xorshift never leaves 0 */
    struct ending untroubled = converge_untroubled(row->scenario, 1);
    struct ending e;
    int draws = DRAWS / row->step;
    int struck = 0;

    print_message("%s: seed %llu\n", row->scenario->name, (unsigned long long)seed);
    for (int i = 0; i < draws; i++) {
        struct trouble t = *row->trouble;
        t.ghosts = converge_may_leave_ghosts(row->scenario);
        if (t.tamper.event)
            request_and_event(&t, &chance, &untroubled);
        else
            two_requests(&t, &chance, &untroubled);
        struck += converge_check(row->scenario, &t, &untroubled, &e);
    }
    assert_true(struck > draws / 4);
    print_message("%s, %s: %d runs, both struck in %d\n", row->scenario->name, row->trouble->name, draws,
                  struck);
}

static const struct trouble PAIRS[] = {{.name = "two-requests"},
                                       {.name = "request-and-event", .tamper = {.event = 1}}};

/* ---- shapes */

enum {
    SILENCE_MS = 400000, /* beyond what a watch is given without a byte */
    BURST_MS = 3000,
    FLAPS = 12,          /* more ends in a row than a watch is resumed */
    LARGE = 1500 * 1024, /* what etcd takes */
    TOO_LARGE = 3200 * 1024,
    DEEP = 200000,
};

#define META                                                                                                 \
    "\"metadata\":{\"name\":\"stranger\",\"namespace\":\"ns\",\"uid\":\"u\",\"resourceVersion\":\"@V\""
#define ERROR(members)                                                                                       \
    "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"status\":\"Failure\"," members "}}\n"
#define BOOKMARK(members) "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"@K\",\"metadata\":{" members "}}}"
#define SHAPE .class = "F5", .counting = COUNTS_ONCE
#define TELL(text) SHAPE, .tamper = {.how = FAKE_RAW, .raw = text, .raw_len = sizeof(text) - 1}
#define END(text) SHAPE, .tamper = {.how = FAKE_RAW_END, .raw = text, .raw_len = sizeof(text) - 1}

static struct trouble SHAPES[] = {
    {"byte-by-byte", SHAPE, .tamper = {.how = FAKE_REPEAT, .piece_bytes = 1}},
    {"pieces-of-seven", SHAPE, .tamper = {.how = FAKE_CUT_AFTER, .piece_bytes = 7}},
    {"utf-8-in-pieces", SHAPE,
     .tamper = {.how = FAKE_RAW,
                .piece_bytes = 1,
                .raw = "{\"type\":\"ADDED\",\"object\":{" META
                       ",\"annotations\":{\"a\":\"\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80\"}}}}\n"}},
    {"several-in-a-piece", SHAPE, .tamper = {.how = FAKE_LATE, .late_ms = BURST_MS}},
    {"silence", SHAPE, .tamper = {.how = FAKE_LATE, .late_ms = SILENCE_MS}},
    {"empty-lines", TELL("\n\n\r\n\n")},
    {"carriage-return", TELL(BOOKMARK("\"resourceVersion\":\"@V\"") "\r\n")},
    {"bookmark", TELL(BOOKMARK("\"resourceVersion\":\"@V\"") "\n")},
    {"bookmark-then-end", END(BOOKMARK("\"resourceVersion\":\"@V\"") "\n")},
    {"bookmark-without-version", TELL(BOOKMARK("") "\n")},
    {"gone-by-reason", END(ERROR("\"reason\":\"Gone\",\"code\":410"))},
    {"gone-by-code", END(ERROR("\"code\":410"))},
    {"error-without-code", END(ERROR("\"message\":\"etcdserver: no leader\""))},
    {"error-500", END(ERROR("\"reason\":\"InternalError\",\"code\":500"))},
    {"error-429",
     END(ERROR("\"reason\":\"TooManyRequests\",\"code\":429,\"details\":{\"retryAfterSeconds\":3}"))},
    {"error-and-on", TELL(ERROR("\"reason\":\"InternalError\",\"code\":500"))},
    {"error-of-nothing", END("{\"type\":\"ERROR\",\"object\":{}}\n")},
    {"half-a-line-then-broken", SHAPE, .tamper = {.how = FAKE_HALF_CUT}},
    {"half-a-line-then-end", SHAPE, .tamper = {.how = FAKE_HALF_END}},
    {"ends-again-and-again", SHAPE, .tamper = {.how = FAKE_END, .repeats = FLAPS}},
    {"breaks-again-and-again", SHAPE, .tamper = {.how = FAKE_CUT_BEFORE, .repeats = FLAPS}},
    {"page-of-a-proxy", END("<html><body>502 Bad Gateway</body></html>\n")},
    {"no-json", TELL("{\"type\":\"MODIFIED\",\"object\":\n")},
    {"no-object", TELL("{\"type\":\"MODIFIED\"}\n")},
    {"object-is-a-text", TELL("{\"type\":\"MODIFIED\",\"object\":\"j\"}\n")},
    {"no-type", TELL("{\"object\":{" META "}}}\n")},
    {"unknown-type", TELL("{\"type\":\"PATCHED\",\"object\":{" META "}}}\n")},
    {"another-kind", TELL("{\"type\":\"ADDED\",\"object\":{\"kind\":\"ConfigMap\"," META "}}}\n")},
    {"no-name",
     TELL("{\"type\":\"ADDED\",\"object\":{\"kind\":\"@K\",\"metadata\":{\"resourceVersion\":\"@V\"}}}\n")},
    {"removal-of-a-stranger", TELL("{\"type\":\"DELETED\",\"object\":{" META "}}}\n")},
    {"zero-bytes", TELL("\0\0\0\n")},
    {"no-utf-8", TELL("\xff\xfe{\xc0\xaf}\n")},
    {"version-goes-back", SHAPE, .tamper = {.how = FAKE_OLD}},
    {"large-line", SHAPE, .tamper = {.how = FAKE_RAW}},
    {"line-beyond-the-limit", SHAPE, .tamper = {.how = FAKE_RAW_END}},
    {"deep-nesting", SHAPE, .tamper = {.how = FAKE_RAW}},
};

/* `n` times the same byte between two texts. */
static void fill(const char *name, const char *before, char byte, size_t n, const char *after)
{
    char *text = malloc(strlen(before) + n + strlen(after) + 1);

    assert_non_null(text);
    strcpy(text, before);
    memset(text + strlen(before), byte, n);
    strcpy(text + strlen(before) + n, after);
    for (size_t i = 0; i < ARRAY_LEN(SHAPES); i++)
        if (strcmp(SHAPES[i].name, name) == 0)
            SHAPES[i].tamper.raw = text;
}

static void at_shapes(void **state)
{
    struct converge_row *row = *state;
    struct trouble t = *row->trouble;

    if (t.tamper.raw && !t.tamper.raw_len)
        t.tamper.raw_len = strlen(t.tamper.raw);
    t.ghosts = converge_may_leave_ghosts(row->scenario);
    converge_sweep(row, &t, &t.tamper.event, faults_in_full() || t.tamper.how == FAKE_OLD ? 1 : 3, ENOUGH);
}

/* In short, these stories see every shape, and the others the one that shows old states. */
static bool sees_all(const char *scenario)
{
    static const char WHOLE[] = " killed-once delete-foreground tensorboard-switched ";
    char word[64];

    snprintf(word, sizeof(word), " %s ", scenario);
    return faults_in_full() || strstr(WHOLE, word);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        const struct trouble *troubles;
        size_t n;
        void (*test)(void **state);
        int step; /* in short */
    } SWEEPS[] = {
        {"converge", REQUESTS, ARRAY_LEN(REQUESTS), at_requests, 2},
        {"sockets", SOCKETS, ARRAY_LEN(SOCKETS), at_requests, 1},
        {"notices", NOTICES, ARRAY_LEN(NOTICES), at_events, 3},
        {"takeover", TAKEOVERS, ARRAY_LEN(TAKEOVERS), at_writes_of_two, 3},
        {"stale", STALES, ARRAY_LEN(STALES), at_lags, 3},
        {"pairs", PAIRS, ARRAY_LEN(PAIRS), at_random, 3},
        {"shapes", SHAPES, ARRAY_LEN(SHAPES), at_shapes, 1},
    };
    char *old_states[] = {"shapes", argc > 2 ? argv[2] : NULL, "version-goes-back"};

    fill("large-line", "{\"type\":\"ADDED\",\"object\":{" META ",\"annotations\":{\"a\":\"", 'x', LARGE,
         "\"}}}}\n");
    fill("line-beyond-the-limit", "", 'x', TOO_LARGE, "");
    fill("deep-nesting", "", '[', DEEP, "\n");
    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(SWEEPS); i++) {
        if (strcmp(argv[1], SWEEPS[i].name) != 0)
            continue;
        bool few = SWEEPS[i].test == at_shapes && argc == 3 && !sees_all(argv[2]);
        converge_step_in_short = SWEEPS[i].step;
        return converge_main(few ? 3 : argc - 1, few ? old_states : argv + 1, SWEEPS[i].troubles, SWEEPS[i].n,
                             SWEEPS[i].test);
    }
    fprintf(stderr, "usage: test_sweeps SWEEP [scenario [trouble [seed]]]\n");
    return 2;
}
