/* run_id.c - take a run's id from the launcher's environment, from the launch, or draw one. */
#include "trainer/state/run_id.h"

#include "common/buf.h"
#include "common/contract.h"
#include "common/fsutil.h"
#include "common/hash.h"
#include "common/sv.h"
#include "host/rank_contract.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static const char MADE_UP[] = "single-";
static const char UNCHOSEN[] = "none"; /* torchrun's default of --rdzv_id */

/* A process's start time in clock ticks since boot: field 22 of /proc/PID/stat (proc(5)), the 20th after the
 * name. */
static bool start_of(pid_t pid, char out[static 32])
{
    cleanup_buf struct buf text = BUF_INIT(4096);
    char path[64];
    struct err ignored;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (fs_read(path, &text, &ignored))
        return false;
    const char *p = strrchr(buf_str(&text), ')');
    for (int field = 2; p && field < 22; field++) {
        p = strchr(p, ' ');
        p += p != NULL;
    }
    if (!p)
        return false;
    snprintf(out, 32, "%.*s", (int)strspn(p, "0123456789"), p);
    return out[0] != '\0';
}

/* Identify this launch: by the folder that the launcher created for it (the same behind a wrapper script that
 * starts a new process for each attempt), else by the parent process's pid and start time. */
static bool launch_find(char *(*get)(const char *name), char out[static MANIFEST_RUN_ID_BYTES], int *attempt)
{
    cleanup_buf struct buf boot = BUF_INIT(256);
    const char *file = get(CONTRACT_ENV_ERROR_FILE);
    const char *at = NULL;
    char start[32];
    struct err ignored;

    *attempt = 0;
    /* Use the last match: one of the user's folders may have the same name. */
    for (const char *p = file; p && (p = strstr(p, CONTRACT_ATTEMPT)); p++)
        at = p;
    if (fs_read("/proc/sys/kernel/random/boot_id", &boot, &ignored))
        return false;
    if (at) {
        (void)sscanf(at + strlen(CONTRACT_ATTEMPT), "%9d", attempt);
        snprintf(out, MANIFEST_RUN_ID_BYTES, "launch-%.36s-%016" PRIx64, buf_str(&boot),
                 hash_fnv1a(HASH_FNV1A, file, (size_t)(at - file)));
        return true;
    }
    if (!start_of(getppid(), start))
        return false;
    snprintf(out, MANIFEST_RUN_ID_BYTES, "launcher-%.36s-%d-%s", buf_str(&boot), (int)getppid(), start);
    return true;
}

/* The operator's launchers have the id "JOB-ATTEMPT"; a program without one, or with its own, gets PTJ_ATTEMPT. */
static struct attempt_mark attempt_of(const char *job, const char *launch, const char *given)
{
    const size_t len = job ? strlen(job) : 0;
    int64_t n = 0;

    if (len && launch && strncmp(launch, job, len) == 0 && launch[len] == '-')
        given = launch + len + 1;
    const bool known = len && given && sv_i64(sv_from(given), 0, ATTEMPT_MAX, &n);
    return (struct attempt_mark){.known = known, .number = (int)n};
}

int run_id_find(char *(*get)(const char *name), struct run_id *ret, struct err *err)
{
    const char *job = get(CONTRACT_ENV_JOB_UID);
    const char *launch = get(CONTRACT_ENV_RUN_ID);
    const char *given = job && job[0] ? job : launch;
    const char *restarts = get(CONTRACT_ENV_RESTART_COUNT);
    char launched[MANIFEST_RUN_ID_BYTES];
    uint64_t random;
    int attempt = 0;

    *ret = (struct run_id){.mark = attempt_of(job, launch, get(CONTRACT_ENV_ATTEMPT))};
    const bool known = given && given[0] && launch_find(get, launched, &attempt);
    if (known)
        ret->mark.launch = ret->launch = (uint32_t)hash_fnv1a(HASH_FNV1A, launched, strlen(launched));
    ret->later_attempt =
        (job && job[0]) || (restarts && restarts[0] && strcmp(restarts, "0") != 0) || attempt > 0;
    if (given && given[0] && (given == job || strcmp(given, UNCHOSEN) != 0)) {
        snprintf(ret->text, sizeof(ret->text), "%s", given);
        return 0;
    }
    if (known) {
        memcpy(ret->text, launched, sizeof(ret->text));
        return 0;
    }
    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return err_errno(err, ERR_FATAL, errno, "getrandom failed, so the run has no id");
    snprintf(ret->text, sizeof(ret->text), "%s%016" PRIx64, MADE_UP, random);
    ret->made_up = true;
    return 0;
}

int run_id_dir(const char *ckpt_dir, const char *id, uint32_t config, char out[static PATH_MAX],
               struct err *err)
{
    char name[RUN_ID_PLAIN_BYTES];
    const size_t len = strlen(id);
    const bool plain = len && len < sizeof(name) && id[0] != '.' && strncmp(id, "step-", 5) != 0 &&
                       strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == len;

    if (plain)
        memcpy(name, id, len + 1);
    else
        snprintf(name, sizeof(name), "run-%016" PRIx64, hash_fnv1a(HASH_FNV1A, id, len));
    if (snprintf(out, PATH_MAX, "%s/%s-%08" PRIx32, ckpt_dir, name, config) < PATH_MAX)
        return 0;
    return err_errno(err, ERR_INVALID, ENAMETOOLONG, "--ckpt_dir: %.80s", ckpt_dir);
}

bool run_id_take_over(struct run_id *id, const char *of_checkpoint)
{
    if (!id->made_up || strncmp(of_checkpoint, MADE_UP, strlen(MADE_UP)) != 0)
        return false;
    snprintf(id->text, sizeof(id->text), "%s", of_checkpoint);
    return true;
}
