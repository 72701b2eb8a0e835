/* session.c - set up a run in the order in which its parts depend on each other. */
#include "trainer/run/session.h"

#include "collectives/device.h"
#include "collectives/noted.h"
#include "host/cpus.h"
#include "host/rank_contract.h"
#include "kernels/device.h"
#include "trainer/run/spawn.h"
#include "trainer/state/save.h"

#include <stdlib.h>

enum { EVALUATE_BATCH = 32 }; /* the least samples per chunk; a chunk that fits into the caches is fastest */

void session_leave(struct session *s)
{
    if (s->left)
        return;
    s->left = true;
    train_release(&s->train);
    /* Do not free memory of a lost device, nor the NCCL table: a call might never return. */
    s->lost = session_device_lost(s);
    if (!s->lost)
        device_comm_close(s->device_comm);
    collectives_close(s->comm);
    s->device_comm = NULL;
    s->comm = NULL;
}

void session_release(struct session *s)
{
    struct err ignored;

    session_leave(s);
    saver_close(&s->saver); /* finish the current checkpoint, whatever ended the run */
    (void)report_close(s->report, &ignored);
    free(s->split_order);
    free(s->sums);
    optim_release(&s->optim);
    optim_release(&s->whole_optim);
    if (!s->lost)
        pipeline_release(&s->pipeline);
    pod_data_close(&s->data);
    if (!s->lost)
        kctx_free(s->ctx);
}

int64_t session_now_ms(const struct session *s)
{
    return s->env->clock.mono_ms(s->env->clock.ctx);
}

double session_seconds_since(const struct session *s, int64_t start_ms)
{
    return (double)(session_now_ms(s) - start_ms) / 1000;
}

static int open_ranks(struct session *s, struct err *err)
{
    if (collectives_config_read(&s->ranks, s->env->get, err) || idle_choose(&s->idle, s->cfg, &s->ranks, err))
        return -1;
    if (s->idle.self) {
        rank_state_begin(s->slot, RANK_CALL_RECV);
        return idle_wait(&s->idle, &s->ranks, s->timeout_ms, err);
    }
    if (session_find_device(s, err))
        return -1;
    s->ranks.slot = s->slot;
    s->comm = collectives_open(&s->ranks, s->timeout_ms, err);
    return s->comm ? 0 : -1;
}

/* Without validation items there is no split: samples keep their order, as when random_split is not
 * called. */
static int make_split(struct session *s, struct torch_rng *rng, struct err *err)
{
    int64_t train, val;

    if (split_sizes(&s->cfg->data.split, s->data.set.train.items, &train, &val, err))
        return -1;
    s->split.first_items = train;
    if (!val)
        return 0;
    s->split_order = calloc((size_t)(train + val), sizeof(*s->split_order));
    if (!s->split_order)
        return err_memory(err, "no memory for the order of the training data");
    split_random(rng, train, val, s->split_order, &s->split);
    return 0;
}

/* Advance every rank's generator to the state of the one that drew the data. */
static void skip_data(const struct session *s, struct torch_rng *rng)
{
    const struct data_spec *d = &s->cfg->data;

    for (uint64_t n = d->format->draws ? d->format->draws(d, &s->data.set.layout) : 0; n; n--)
        torch_rng_u32(rng);
}

/* Draw the weights, then the split, from one generator: the order of the original program. */
static int make_model(struct session *s, struct err *err)
{
    const struct config *cfg = s->cfg;
    /* Sequences are large: use the batch size of training. */
    int most = (int)(cfg->batch_size > EVALUATE_BATCH ? cfg->batch_size : EVALUATE_BATCH);
    struct torch_rng rng;

    struct pipeline_options o = {.spec = &cfg->model,
                                 .comm = s->comm,
                                 .device_comm = s->device_comm,
                                 .ctx = s->ctx,
                                 .batch = (int)cfg->batch_size,
                                 .micro_batches = (int)cfg->micro_batches,
                                 .evaluate = cfg->model.input.sequence ? 0 : most,
                                 .timeout_ms = s->timeout_ms};
    if (pipeline_open(&s->pipeline, &o, err))
        return -1;
    s->model = s->pipeline.model;
    if (session_check_fit(s, err))
        return -1;
    torch_rng_seed(&rng, (uint64_t)cfg->seed);
    skip_data(s, &rng);
    if (pipeline_init(&s->pipeline, &rng, err) || make_split(s, &rng, err) ||
        optim_make(&s->optim, &cfg->optimizer, s->model->row, s->model->rows, err))
        return -1;
    if (!s->pipeline.whole)
        return 0;
    return optim_make(&s->whole_optim, &cfg->optimizer, s->pipeline.whole->row, s->pipeline.whole->rows, err);
}

static int make_train(struct session *s, struct err *err)
{
    const struct config *cfg = s->cfg;
    struct train_parts p = {
        .pipeline = &s->pipeline,
        .optim = &s->optim,
        .stop = s->env->stop,
        .sampler = {.items = s->split.first_items,
                    .rank = s->pipeline.at.replica,
                    .world = s->pipeline.at.replicas,
                    .seed = (uint64_t)cfg->sampler_seed,
                    .shuffle = !cfg->data.in_order},
        .bucket_bytes = (size_t)(cfg->bucket_mb * 1048576),
        .loss = cfg->loss,
        .seed = (uint64_t)cfg->seed,
    };

    feed_init(&p.feed, &s->data.set, false, s->split.first, &cfg->data);
    p.feed.vocab = s->pipeline.output.channels;
    return train_make(&s->train, &p, err);
}

/* Steps of a whole epoch with this number of ranks. */
static int64_t steps_of(const struct session *s)
{
    struct sampler whole = s->train.p.sampler;

    whole.first = 0;
    return sampler_steps(&whole, s->cfg->batch_size);
}

static int make_report(struct session *s, struct err *err)
{
    const struct config *cfg = s->cfg;
    struct report_options o = {
        .out = s->env->out,
        .bar = s->env->bar,
        .format = (enum log_format)cfg->log_format,
        .own_lines = cfg->own_lines,
        .steps_asked = cfg->log_interval > 0,
        .log_dir = cfg->log_dir,
        .progress = s->env->get(CONTRACT_ENV_PROGRESS_FILE),
        .epochs = cfg->epochs,
        .steps = steps_of(s),
        .max_steps = cfg->max_steps,
        .samples_per_step = cfg->batch_size * s->pipeline.at.replicas,
        .later_attempt = s->run_id.mark.known && s->run_id.mark.number > 0,
        .resumed_step = s->resumed.resumed ? s->cursor.step : -1,
        .clock = s->env->clock,
    };

    if (s->comm->rank != 0)
        return 0;
    if (cfg->save_path && save_check(cfg->save_path, err))
        return err_wrap(err, "--save_path");
    s->report = report_open(&o, err);
    return s->report ? 0 : -1;
}

/* Ranks save, gather and write histograms together, so rank 0 broadcasts its options. */
static int share_save_options(struct session *s, struct err *err)
{
    const struct config *cfg = s->cfg;
    int64_t options[] = {cfg->save_path != NULL, cfg->save_every, cfg->log_dir ? cfg->log_histograms : 0,
                         s->saver.asynchronous, s->saver.save_steps};

    if (collectives_broadcast(s->comm, options, sizeof(options), 0, s->timeout_ms, err))
        return -1;
    s->saves = options[0];
    s->save_every = options[1];
    s->histograms_every = options[2];
    s->saver.asynchronous = options[3];
    s->saver.save_steps = options[4];
    return 0;
}

/* Start the checkpoint writer. Without a thread or memory the saver still works, so that is not an error. */
static void open_saver(struct session *s)
{
    const struct snapshot all = session_snapshot(s);

    if (!s->cfg->eval_only && saver_open(&s->saver, &all, &s->why_synchronous))
        err_wrap(&s->why_synchronous, "the training waits for each checkpoint");
}

static bool stopped(void *stop)
{
    return stop_poll(stop) != 0;
}

static int open_data(struct session *s, struct err *err)
{
    struct pod_data_options o = {
        .source = {.spec = &s->cfg->data, .dir = s->cfg->data_dir, .seed = (uint64_t)s->cfg->seed},
        .download = !s->cfg->no_download,
        .limits = {.bytes_max = FETCH_BYTES_MAX,
                   .stall_s = FETCH_STALL_S,
                   .pause_ms = FETCH_PAUSE_MS,
                   .lock_ms = s->timeout_ms,
                   .ca_file = s->env->get("SSL_CERT_FILE"),
                   .stopped = s->env->stop ? stopped : NULL,
                   .stop_ctx = s->env->stop},
        .kept = s->env->get(CONTRACT_ENV_KEPT_DATA),
        .now_ms = s->env->clock.wall_ms(s->env->clock.ctx),
        .local_rank = s->ranks.local_rank,
        .fingerprint = config_fingerprint(s->cfg),
        .timeout_ms = s->timeout_ms,
    };

    if (pod_data_open(&s->data, s->comm, &o, err))
        return -1;
    s->times.data_s = session_seconds_since(s, s->env->started_ms);
    s->times.data_kept = s->data.found;
    return 0;
}

struct lines_values session_lines(const struct session *s, int64_t epoch)
{
    const struct config *cfg = s->cfg;

    return (struct lines_values){.rank = s->comm->rank,
                                 .world = s->comm->world,
                                 .epoch = epoch,
                                 .epochs = cfg->epochs,
                                 .batch_size = cfg->batch_size,
                                 .steps = steps_of(s),
                                 .save_every = cfg->save_every,
                                 .save_path = cfg->save_path};
}

/* Print rank 0's first line before any other rank's. */
static int print_start(struct session *s, struct err *err)
{
    const struct config *cfg = s->cfg;
    struct lines_values v = session_lines(s, 0);

    report_start(s->report, cfg, s->pipeline.whole_len, s->comm->world, s->comm->transport,
                 device_name(s->ctx), device_is_host(s->ctx) ? kctx_threads(s->ctx) : 1, &s->times);
    if (!cfg->lines.start)
        return 0;
    if (s->comm->rank == 0 && cfg->log_format == LOG_FORMAT_TEXT)
        report_line(s->report, s->env->out, LOG_FORMAT_TEXT, "start", cfg->lines.start, &v);
    return collectives_barrier(s->comm, s->timeout_ms, err);
}

int session_open(struct session *s, const struct config *cfg, const struct run_env *env, struct err *err)
{
    struct kctx_options machine = {0};

    *s = (struct session){.cfg = &s->effective,
                          .given = cfg,
                          .effective = *cfg,
                          .env = env,
                          .slot = rank_state_join(env->get(CONTRACT_ENV_RANK_STATE)),
                          .timeout_ms = (int64_t)(cfg->timeout_s * 1000)};
    rank_state_phase(s->slot, RANK_STARTING);
    /* Before the ranks are connected no loop polls for signals, so they keep their default action. From here
     * on threads inherit the mask. */
    if (open_ranks(s, err))
        return -1;
    if (s->idle.self)
        return 0;
    if (env->stop && stop_open(env->stop, err))
        return -1;
    s->times.met_s = session_seconds_since(s, s->env->started_ms);
    machine.threads = cfg->threads ? (int)cfg->threads
                                   : spawn_threads(s->env->get("OMP_NUM_THREADS"), cpus_usable(),
                                                   s->ranks.local_world, KCTX_THREADS_MAX);
    if (session_open_device(s, err))
        return -1;
    if (!s->ctx && !(s->ctx = kctx_make(&machine, err)))
        return -1;
    if (session_share_batch(s, err) || open_data(s, err) || make_model(s, err) || make_train(s, err) ||
        session_begin(s, err) || make_report(s, err))
        return -1;
    open_saver(s);
    if (share_save_options(s, err) || print_start(s, err))
        return -1;
    if (s->idle.ranks)
        report_note(s->report, true, s->idle.why);
    if (s->gpu.note[0])
        report_note(s->report, true, s->gpu.note);
    if (s->why_synchronous.kind)
        report_note(s->report, true, s->why_synchronous.msg);
    for (int i = 0; i < s->resumed.notes; i++)
        report_note(s->report, s->resumed.note[i].warning, s->resumed.note[i].text);
    return 0;
}
