/* session_state.c - the checkpoints of a run: resume from one, gather the state for one, set up the saver. */
#include "collectives/noted.h"
#include "common/fsutil.h"
#include "common/memory.h"
#include "kernels/device.h"
#include "trainer/pipeline/pipeline.h"
#include "trainer/run/session.h"
#include "trainer/state/weights/fill.h"
#include "trainer/state/weights/weights.h"

/* ---- rank 0 reads weights from a file and broadcasts them */

static int read_weights(const char *path, struct model *m, struct err *err)
{
    cleanup_weights struct weights w = {0};
    struct fill_source *from;

    if (weights_open(&w, path, err))
        return -1;
    if (fill_find(&w.list, m, &w.arena, &from, err))
        return err_wrap(err, "%.100s", path);
    fill_copy(from, m);
    return 0;
}

static int init_from(const char *path, struct pipeline *p, struct err *err)
{
    struct collectives *c = p->o.comm;
    struct err own = {0};
    int64_t read = 1;

    if (c->rank == 0)
        read = !read_weights(path, p->at.stages > 1 ? p->whole : p->model, &own);
    if (collectives_broadcast(c, &read, sizeof(read), 0, p->o.timeout_ms, err) || own.kind) {
        if (own.kind)
            *err = own;
        return -1;
    }
    if (!read)
        return err_set(err, ERR_PEER, "rank 0 could not read the weights to begin with");
    return pipeline_spread(p, err);
}

/* ---- the checkpoints */

struct snapshot session_snapshot(struct session *s)
{
    struct snapshot all = {.model = s->model,
                           .optim = &s->optim,
                           .cursor = &s->cursor,
                           .sums = s->sums,
                           .n_sums = 1 + s->comm->world};

    if (s->pipeline.whole) {
        all.optim = &s->whole_optim;
        all.model = s->pipeline.whole;
    }
    /* The optimizer's live moments are in other memory: in stages, or on a device. */
    all.moments_gathered = all.optim != &s->optim || !device_is_host(s->ctx);
    return all;
}

int session_gather(struct session *s, struct err *err)
{
    const bool reads = s->pipeline.at.replica == 0;
    struct model *whole;
    double own;

    if (train_pull(&s->train, reads ? TRAIN_READS_ALL : TRAIN_READS_NOTHING, err) ||
        train_sums(&s->train, &own, s->sums, err) ||
        collectives_all_gather(s->comm, &own, sizeof(own), s->sums + 1, s->timeout_ms, err))
        return -1;
    if (s->pipeline.at.stages == 1)
        return 0;
    s->whole_optim.step = s->optim.step;
    return pipeline_whole(&s->pipeline, &whole, err) ||
                   (s->optim.m && pipeline_gather(&s->pipeline, s->optim.m, s->whole_optim.m, err)) ||
                   (s->optim.v && pipeline_gather(&s->pipeline, s->optim.v, s->whole_optim.v, err))
               ? -1
               : 0;
}

/* Distribute the state after rank 0 has read a checkpoint. */
static int scatter(struct session *s, struct err *err)
{
    s->optim.step = s->cursor.step;
    return pipeline_spread(&s->pipeline, err) ||
                   (s->optim.m && pipeline_scatter(&s->pipeline, s->optim.m, s->whole_optim.m, err)) ||
                   (s->optim.v && pipeline_scatter(&s->pipeline, s->optim.v, s->whole_optim.v, err))
               ? -1
               : 0;
}

/* With another number of samples, a position of the epoch's order is another sample: report that. */
static void compare_items(struct session *s)
{
    struct cursor *c = &s->cursor;
    const int64_t items = s->split.first_items;

    if (c->consumed && !c->validated && c->items != items)
        resume_note(
            &s->resumed, true,
            "the training data have %lld samples, and had %lld when the checkpoint was written: what is left "
            "of epoch %lld is drawn from those there are now",
            (long long)items, (long long)c->items, (long long)c->epoch);
    c->items = items;
}

/* The saver writes to the folder of the run and its configuration. A run without a job continues in the
 * folder of the run that it has resumed, unless that one still writes there. */
static int make_saver(struct session *s, const struct resume_options *o, struct err *err)
{
    const struct config *cfg = s->cfg;
    struct run_id other = s->run_id;
    int lock_fd = 0;

    if (!cfg->eval_only && run_id_take_over(&other, s->resumed.run_id)) {
        struct err cannot; /* then the saver cannot write either, and reports why */
        if (run_id_dir(cfg->ckpt_dir, other.text, o->config, s->run_dir, err))
            return -1;
        if (fs_mkdirs_synced(s->run_dir, &cannot) == 0)
            lock_fd = ckpt_lock(s->run_dir);
        if (lock_fd >= 0)
            s->run_id = other;
    }
    if (run_id_dir(cfg->ckpt_dir, s->run_id.text, o->config, s->run_dir, err))
        return -1;
    s->saver = (struct saver){.dir = s->run_dir,
                              .save_steps = cfg->save_steps,
                              .save_ms = (int64_t)(cfg->save_seconds * 1000),
                              .keep = cfg->keep,
                              .config = o->config,
                              .run_id = o->run_id,
                              .launch = o->launch,
                              .mark = s->mark,
                              .rank = s->comm->rank,
                              .locks = s->run_id.made_up,
                              .lock_fd = lock_fd,
                              .clock = s->env->clock,
                              .last_ms = session_now_ms(s),
                              .last_step = -1};
    return 0;
}

int session_check_attempt(struct session *s, struct err *err)
{
    struct err cannot = {0}; /* then the saver cannot write either, and reports why */

    if (s->comm->rank == 0 && ckpt_claim(s->run_dir, &s->mark, &cannot) && cannot.kind == ERR_PEER) {
        *err = cannot;
        return err_wrap(err, "--ckpt_dir");
    }
    return 0;
}

/* Take the attempt's mark before the checkpoints are read, so that no other attempt adds one afterwards. */
static int take_mark(struct session *s, uint32_t config, struct err *err)
{
    if (s->cfg->eval_only)
        return 0;
    s->mark = s->run_id.mark;
    return run_id_dir(s->cfg->ckpt_dir, s->run_id.text, config, s->run_dir, err) ||
                   session_check_attempt(s, err)
               ? -1
               : 0;
}

int session_begin(struct session *s, struct err *err)
{
    const struct config *cfg = s->cfg;

    if (run_id_find(s->env->get, &s->run_id, err))
        return -1;
    struct resume_options o = {.how = cfg->resume,
                               .dir = cfg->ckpt_dir,
                               .config = config_resumable(s->given),
                               .run_id = s->run_id.text,
                               .later_attempt = s->run_id.later_attempt,
                               .launch = s->run_id.launch,
                               .timeout_ms = s->timeout_ms};

    if (take_mark(s, o.config, err))
        return -1;
    s->sums = memory_must(calloc(1 + (size_t)s->comm->world, sizeof(*s->sums)));
    struct snapshot all = session_snapshot(s);
    s->cursor = (struct cursor){
        .epoch = 1, .items = s->split.first_items, .step_samples = cfg->batch_size * s->pipeline.at.replicas};
    if (resume(&all, s->comm, &o, &s->resumed, err) || (s->resumed.resumed && scatter(s, err)) ||
        collectives_broadcast(s->comm, s->sums, (size_t)all.n_sums * sizeof(*s->sums), 0, s->timeout_ms, err))
        return -1;
    compare_items(s);
    /* A later attempt does not need the initial weights, and the file may be gone. */
    if (cfg->init_from && !s->resumed.resumed && init_from(cfg->init_from, &s->pipeline, err))
        return err_wrap(err, "--init_from");
    train_push(&s->train); /* nothing after this writes weights on the host */
    return make_saver(s, &o, err);
}
