/* fuzz.h - what every fuzz target has: its one function, and a check that stops the fuzzer.
 *
 * fuzz_<target>.c checks what must hold for any bytes. With -DTK_FUZZ=ON (clang) it becomes a libFuzzer program; in
 * every build replay.c feeds it the corpus, each prefix of it and each byte of it changed.
 */
#ifndef TK_TESTS_FUZZ_FUZZ_H
#define TK_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(cond)                                                                                           \
    do {                                                                                                     \
        if (!(cond)) {                                                                                       \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #cond);                        \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

#endif
