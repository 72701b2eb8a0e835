/* fuzz_time.c - a time that is read can be written, and what is written is read as the same time. */
#include "fuzz.h"

#include "common/clock.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t year_1_ms = INT64_C(-62135596800000), year_10000_ms = INT64_C(253402300800000);
    char text[64], written[CLOCK_RFC3339_BYTES];
    int64_t ms = -1, again;

    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (!clock_parse_rfc3339(text, &ms)) {
        MUST(ms == -1);
        return 0;
    }
    clock_rfc3339(ms, true, written);
    /* An offset may lead out of the years that have four digits. */
    if (ms < year_1_ms || ms >= year_10000_ms)
        return 0;
    MUST(clock_parse_rfc3339(written, &again) && again == ms);
    clock_rfc3339(ms, false, written);
    MUST(clock_parse_rfc3339(written, &again) && again <= ms && ms - again < 1000);
    return 0;
}
