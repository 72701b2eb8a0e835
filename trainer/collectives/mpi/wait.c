/* wait.c - nonblocking calls, polled: the only way to a deadline. The library moves data while it is polled. */
#include "common/clock.h"
#include "trainer/collectives/mpi/state.h"

#include <sched.h>
#include <time.h>

/* Polls before the clock is asked; before others get the CPU; before we sleep, and how long. */
enum { POLLS = 64, POLLS_YIELD = 256, POLLS_SLEEP = 20000, SLEEP_NS = 50000 };

int mpi_begin(const struct mpi *m, const char *what, int64_t timeout_ms, int64_t *deadline_ms,
              struct err *err)
{
    if (timeout_ms < 0)
        return err_set(err, ERR_INVALID, "%s: negative timeout", what);
    if (m->failed.kind != ERR_NONE) {
        *err = m->failed;
        return -1;
    }
    *deadline_ms = clock_mono_ms() + timeout_ms;
    return 0;
}

int mpi_fail(struct mpi *m, const struct err *why, struct err *err)
{
    if (m->failed.kind == ERR_NONE)
        m->failed = *why;
    *err = *why;
    return -1;
}

/* Whatever breaks between ranks is a peer's end as far as we can know. */
static int library_error(struct mpi *m, int code, const char *what, struct err *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int len = 0;
    struct err why = {0};

    if (MPI_Error_string(code, text, &len) != MPI_SUCCESS)
        text[0] = '\0';
    err_set(&why, ERR_PEER, "%s: MPI: %.160s", what, text);
    return mpi_fail(m, &why, err);
}

static void rest(int polls)
{
    const struct timespec ts = {.tv_nsec = SLEEP_NS};

    if (polls > POLLS_SLEEP)
        nanosleep(&ts, NULL);
    else if (polls > POLLS_YIELD)
        sched_yield();
}

int mpi_wait(struct mpi *m, int code, MPI_Request *rq, const char *what, int64_t deadline_ms, struct err *err)
{
    int done = 0;

    for (int polls = 0; code == MPI_SUCCESS; polls += polls <= POLLS_SLEEP) {
        code = MPI_Test(rq, &done, MPI_STATUS_IGNORE);
        if (done || code != MPI_SUCCESS)
            break;
        if (polls >= POLLS && clock_mono_ms() >= deadline_ms) {
            struct err why = {0};
            err_set(&why, ERR_TIMEOUT, "%s: deadline passed while waiting for other ranks", what);
            return mpi_fail(m, &why, err);
        }
        rest(polls);
    }
    return code == MPI_SUCCESS ? 0 : library_error(m, code, what, err);
}
