/* run.c - train for all epochs, validate, test, and write the results. */
#include "trainer/run/run.h"

#include "collectives/noted.h"
#include "common/contract.h"
#include "trainer/run/run_epoch.h"
#include "trainer/state/save.h"

#include <math.h>

enum { STOPPED_MS = 1000 };

void run_print_stop(struct session *s, uint32_t stop, const char *during)
{
    report_stop(s->report, stop & COLLECTIVES_STOP_TERM ? "SIGTERM" : "SIGINT", during, s->cursor.epoch,
                s->cursor.epoch_step);
}

void run_print_epoch(struct session *s, int64_t epoch, const char *event, const char *text, double loss)
{
    struct lines_values v = session_lines(s, epoch - 1);

    v.loss = loss;
    report_line(s->report, s->env->out, (enum log_format)s->cfg->log_format, event, text, &v);
}

/* Collective: rank 0 writes the weights. */
static int save(struct session *s, struct err *err)
{
    const bool reads = s->pipeline.at.replica == 0; /* pipeline_whole reads this rank's weights */
    struct model *whole;

    if (train_pull(&s->train, reads ? TRAIN_READS_WEIGHTS : TRAIN_READS_NOTHING, err) ||
        pipeline_whole(&s->pipeline, &whole, err))
        return -1;
    if (session_check_attempt(s, err))
        return -1;
    if (s->comm->rank == 0 && save_weights(s->cfg->save_path, whole, err))
        return err_wrap(err, "--save_path");
    return 0;
}

/* Save after epochs 0, n, 2n, ..., in the numbering of the lines. */
static int save_epoch(struct session *s, int64_t epoch, struct err *err)
{
    const struct config *cfg = s->cfg;

    if (!s->saves || !s->save_every || (epoch - 1) % s->save_every != 0)
        return 0;
    const enum rank_phase was = rank_state_phase(s->slot, RANK_SAVING);
    if (save(s, err))
        return -1;
    rank_state_phase(s->slot, was);
    if (s->comm->rank == 0)
        run_print_epoch(s, epoch, "saved", cfg->lines.saved, NAN);
    return 0;
}

/* After an epoch: validation, exports, and the checkpoint of its last step. */
static int end_epoch(struct session *s, uint32_t *stop, struct err *err)
{
    struct cursor *c = &s->cursor;

    if (!c->validated && run_validate(s, stop, err))
        return -1;
    if (*stop)
        return 0;
    if (!c->validated && save_epoch(s, c->epoch, err))
        return -1;
    c->validated = true;
    if (s->saver.wanted && run_checkpoint(s, false, err))
        return -1;
    c->epoch++;
    c->consumed = c->epoch_step = 0;
    c->validated = false;
    return 0;
}

/* All ranks leave together, so that no launcher stops the others because one has exited. */
static int stop_together(struct session *s, struct err *err)
{
    return run_last_checkpoint(s, err) || collectives_barrier(s->comm, s->timeout_ms, err) ? -1 : 0;
}

/* A checkpoint may have become due while the previous one was being written: after the last step, save it
 * now. */
static int save_what_is_due(struct session *s, struct err *err)
{
    uint8_t due = s->saver.due; /* rank 0 alone knows */

    if (collectives_broadcast(s->comm, &due, sizeof(due), 0, s->timeout_ms, err))
        return -1;
    return due && (run_settle(s, false, err) || run_checkpoint(s, false, err)) ? -1 : 0;
}

static int train_all(struct session *s, uint32_t *stop, struct err *err)
{
    bool ended = true;

    s->times.startup_s = session_seconds_since(s, s->env->started_ms);
    rank_state_phase(s->slot, RANK_TRAINING);
    while (s->cursor.epoch <= s->cfg->epochs && !*stop && ended) {
        if (run_epoch(s, stop, &ended, err) || (!*stop && ended && end_epoch(s, stop, err)))
            return -1;
    }
    if (*stop)
        return stop_together(s, err);
    return save_what_is_due(s, err);
}

/* Whether to write --save_path at the end: also if the run ends before its last epoch (--max_steps). */
static bool saves_at_end(const struct session *s)
{
    return s->saves && (!s->save_every || s->cfg->eval_only || run_has_all_steps(s));
}

static int finish(struct session *s, uint32_t *stop, struct err *err)
{
    const struct config *cfg = s->cfg;
    struct feed f;
    const int64_t items = run_part_of(s, true, &f);
    struct evaluate_result r;

    /* with tokens, validation has used the files already */
    if (items && ((cfg->test && !s->data.set.layout.steps) || cfg->eval_only)) {
        rank_state_phase(s->slot, RANK_VALIDATING);
        if (evaluate(&s->train, &f, items, &r, err))
            return -1;
        *stop = r.stop;
        if (r.stop) {
            run_print_stop(s, r.stop, "test");
            return cfg->eval_only ? 0 : stop_together(s, err);
        }
        if (run_check_loss(s, "test", r.loss, err))
            return -1;
        report_test(s->report, s->cursor.step, r.loss, r.accuracy);
    }
    rank_state_phase(s->slot, RANK_SAVING);
    if (saves_at_end(s) && save(s, err))
        return -1;
    if (!cfg->eval_only)
        report_times(s->report, &s->times);
    return run_await_checkpoint(s, err);
}

static int exit_code_of(const struct err *err, bool set_up_done)
{
    if (!err_is_shortage(err) && (err->kind == ERR_INVALID || err->kind == ERR_NOT_FOUND))
        return set_up_done ? EXIT_CODE_ERROR : EXIT_CODE_USAGE;
    return collectives_exit_code(err);
}

static int run_with(struct session *s, const struct config *cfg, const struct run_env *env,
                    struct run_result *ret, struct err *err)
{
    uint32_t stop = 0;

    if (session_open(s, cfg, env, err)) {
        ret->rank = s->comm || s->idle.self ? s->ranks.rank : -1;
        ret->exit_code = exit_code_of(err, false);
        /* A stop signal arrived meanwhile: not an error to retry. */
        stop = env->stop ? stop_poll(env->stop) : 0;
        if (stop && (ret->exit_code == EXIT_CODE_RETRYABLE || ret->exit_code == EXIT_CODE_PEER_LOST))
            ret->exit_code = stop_exit_code(stop);
        return -1;
    }
    ret->rank = s->ranks.rank;
    if (s->idle.self) {
        ret->exit_code = s->idle.exit_code;
        return 0;
    }
    if ((!cfg->eval_only && train_all(s, &stop, err)) || (!stop && finish(s, &stop, err))) {
        ret->exit_code = exit_code_of(err, true);
        return -1;
    }
    (void)report_close(TAKE(s->report), &ret->warning);
    if (stop)
        ret->exit_code = stop_exit_code(stop);
    /* Idle ranks that received the signal too have exited. */
    collectives_end(s->comm, ret->exit_code, ret->exit_code ? STOPPED_MS : s->timeout_ms);
    return 0;
}

int run(const struct config *cfg, const struct run_env *env, struct run_result *ret, struct err *err)
{
    cleanup_session struct session s;

    *ret = (struct run_result){.rank = -1};
    struct err ignored;
    int rc = run_with(&s, cfg, env, ret, err);
    report_hide(s.report);
    if (rc && env->failed)
        env->failed(env, ret, err);
    session_leave(&s);
    ret->device_lost = s.lost;
    /* Does nothing, unless the run failed. */
    return run_await_checkpoint(&s, &ignored) ? -1 : rc;
}
