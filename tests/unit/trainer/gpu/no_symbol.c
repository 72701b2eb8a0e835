/* no_symbol.c - a shared object that is no plug-in. */
extern const int nothing_here;
const int nothing_here = 1;
