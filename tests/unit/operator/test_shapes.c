/* test_shapes.c - whatever a watch's bytes look like, a job comes to the same end: the story is run again with each of
 * its watch events in turn led up to, cut short or replaced by something that a server, a proxy or a bad day may send.
 *
 * In short each third event of a few stories is struck, and every event of every story by the shape that shows old states.
 *
 * usage: test_shapes [scenario [trouble]]
 */
#include "converge.h"
#include "faults.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

enum {
    ENOUGH = 5,
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

static struct trouble TROUBLES[] = {
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
    for (size_t i = 0; i < ARRAY_LEN(TROUBLES); i++)
        if (strcmp(TROUBLES[i].name, name) == 0)
            TROUBLES[i].tamper.raw = text;
}

static void sweep(void **state)
{
    struct converge_row *row = *state;
    struct trouble t = *row->trouble;

    if (t.tamper.raw && !t.tamper.raw_len)
        t.tamper.raw_len = strlen(t.tamper.raw);
    t.ghosts = converge_may_leave_ghosts(row->scenario);
    converge_sweep(row, &t, &t.tamper.event, faults_in_full() || t.tamper.how == FAKE_OLD ? 1 : 3, ENOUGH);
}

/* In short, these stories see every shape. */
static bool sees_all(const char *scenario)
{
    static const char *const WHOLE[] = {"killed-once", "delete-foreground", "tensorboard-switched"};

    for (size_t i = 0; i < ARRAY_LEN(WHOLE); i++)
        if (strcmp(scenario, WHOLE[i]) == 0)
            return true;
    return faults_in_full();
}

int main(int argc, char **argv)
{
    char *old_states[] = {argv[0], argc > 1 ? argv[1] : NULL, (char[]){"version-goes-back"}};

    fill("large-line", "{\"type\":\"ADDED\",\"object\":{" META ",\"annotations\":{\"a\":\"", 'x', LARGE,
         "\"}}}}\n");
    fill("line-beyond-the-limit", "", 'x', TOO_LARGE, "");
    fill("deep-nesting", "", '[', DEEP, "\n");
    int failed = argc != 2 || sees_all(argv[1]) ? CONVERGE_MAIN(argc, argv, TROUBLES, sweep)
                                                : CONVERGE_MAIN(3, old_states, TROUBLES, sweep);
    free((void *)(uintptr_t)TROUBLES[ARRAY_LEN(TROUBLES) - 1].tamper.raw);
    free((void *)(uintptr_t)TROUBLES[ARRAY_LEN(TROUBLES) - 2].tamper.raw);
    free((void *)(uintptr_t)TROUBLES[ARRAY_LEN(TROUBLES) - 3].tamper.raw);
    return failed;
}
