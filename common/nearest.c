/* nearest.c - find the word with the smallest edit distance (with swaps), for "did you mean". */
#include "common/nearest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { BEGINNING = 3, COST_BEGINS = 4, COST_NONE = 5 };

static int letter(char c)
{
    return c == '-' ? '_' : tolower((unsigned char)c);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int distance(struct sv a, struct sv b)
{
    int rows[3][NEAREST_BYTES + 1];

    for (size_t i = 0; i <= a.len; i++) {
        int *now = rows[i % 3], *before = rows[(i + 2) % 3], *second = rows[(i + 1) % 3];
        now[0] = (int)i;
        for (size_t k = 1; i == 0 && k <= b.len; k++)
            now[k] = (int)k;
        for (size_t k = 1; i > 0 && k <= b.len; k++) {
            const int x = letter(a.p[i - 1]), y = letter(b.p[k - 1]);
            now[k] = least(before[k - 1] + (x != y), 1 + least(before[k], now[k - 1]));
            if (i > 1 && k > 1 && x == letter(b.p[k - 2]) && letter(a.p[i - 2]) == y)
                now[k] = least(now[k], second[k - 2] + 1);
        }
    }
    return rows[a.len % 3][b.len];
}

static bool begins(struct sv a, struct sv b)
{
    if (b.len < BEGINNING || b.len >= a.len)
        return false;
    for (size_t i = 0; i < b.len; i++)
        if (letter(a.p[i]) != letter(b.p[i]))
            return false;
    return true;
}

static int most_wrong(size_t len)
{
    return len < 2 ? 0 : len < 6 ? 1 : len < 9 ? 2 : 3;
}

struct nearest nearest_to(struct sv given)
{
    return (struct nearest){.given = given, .cost = COST_NONE};
}

void nearest_offer(struct nearest *n, const char *word)
{
    const struct sv w = sv_from(word);
    int cost;

    if (!n->given.len || n->given.len > NEAREST_BYTES || w.len > NEAREST_BYTES)
        return;
    cost = distance(n->given, w);
    if (cost > most_wrong(n->given.len))
        cost = begins(w, n->given) || begins(n->given, w) ? COST_BEGINS : COST_NONE;
    if (cost < n->cost) {
        n->cost = cost;
        n->word = word;
    }
}

void nearest_offer_all(struct nearest *n, const char *const *words)
{
    for (; *words; words++)
        nearest_offer(n, *words);
}

const char *nearest_hint(const struct nearest *n, const char *prefix, char buf[static NEAREST_HINT_BYTES])
{
    buf[0] = '\0';
    if (n->word)
        snprintf(buf, NEAREST_HINT_BYTES, "; did you mean %.8s%s?", prefix, n->word);
    return buf;
}
