/* clock.h - an interface for reading time, which tests replace, and RFC 3339 text.
 *
 * Units:     milliseconds, `cpu` microseconds. `wall` counts from the Unix epoch and may step. `mono` and `boot` never go back;
 *            `boot` also counts while the machine is suspended.
 */
#ifndef TK_COMMON_CLOCK_H
#define TK_COMMON_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct clock {
    int64_t (*wall_ms)(void *ctx);
    int64_t (*mono_ms)(void *ctx);
    int64_t (*boot_ms)(void *ctx);
    int64_t (*cpu_us)(void *ctx); /* used by this thread */
    void *ctx;
};

/* The system's clocks. */
struct clock clock_system(void);

/* The system's monotonic clock, for code that only counts down to its own deadlines. */
int64_t clock_mono_ms(void);

enum { CLOCK_RFC3339_BYTES = 32 };

/* Write "2026-01-02T03:04:05Z" (seconds, as Kubernetes writes times), or with ".678" if `millis`. Pure. */
void clock_rfc3339(int64_t wall_ms, bool millis, char out[static CLOCK_RFC3339_BYTES]);

/* Write "2026-01-02_03:04:05" in the machine's time zone, as PyTorch's launcher writes times. */
void clock_local(int64_t wall_ms, char out[static CLOCK_RFC3339_BYTES]);

/* Parse RFC 3339 with 'Z' or an offset and an optional fraction, as Kubernetes writes it. False: not such a
 * time. Pure. */
bool clock_parse_rfc3339(const char *text, int64_t *ret_wall_ms);

#endif
