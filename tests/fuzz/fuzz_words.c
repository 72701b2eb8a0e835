/* fuzz_words.c - words are the text, and the same ones whether it is seen whole or in two parts. */
#include "fuzz.h"

#include "tools/text/words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t seen = size ? data[0] : 0;

    for (size_t at = 0; at < size;) {
        size_t whole = words_next(data + at, size - at, false);
        MUST(whole >= 1 && whole <= size - at);
        size_t cut = seen > at && seen < size ? seen - at : size - at;
        size_t part = words_next(data + at, cut, true);
        MUST(!part || part == whole);
        at += whole;
    }
    return 0;
}
