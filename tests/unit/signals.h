/* signals.h - signals as from a terminal: whoever started the test in the background may have made them ignored. */
#ifndef TK_TESTS_UNIT_SIGNALS_H
#define TK_TESTS_UNIT_SIGNALS_H

#include <signal.h>
#include <stddef.h>

/* In a child, before it becomes another program. */
static inline void signals_default(void)
{
    static const int all[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        (void)signal(all[i], SIG_DFL);
}

#endif
