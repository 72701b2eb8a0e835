/* The process that holds a pod's namespaces: it waits for its end and reaps orphans. */
#include <signal.h>
#include <unistd.h>

static void end(int signal_number)
{
    (void)signal_number;
    _exit(0);
}

int main(void)
{
    signal(SIGCHLD, SIG_IGN); /* the kernel then reaps for us */
    signal(SIGTERM, end);
    signal(SIGINT, end);
    for (;;)
        pause();
}
