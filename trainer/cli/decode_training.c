/* decode_training.c - decode the loss, optimizer and schedule of a preset. */
#include "trainer/cli/decode.h"
#include "trainer/model/optim.h"

int decode_loss(const struct yaml_at *root, struct loss_spec *ret, struct err *err)
{
    static const char *const types[] = {[LOSS_CROSS_ENTROPY] = "cross_entropy", [LOSS_MSE] = "mse", NULL};
    static const struct spec_option own[][2] = {
        [LOSS_CROSS_ENTROPY] = {{.key = "label_smoothing"}}, [LOSS_MSE] = {{0}}};
    struct yaml_at at = yaml_member(root, "loss");
    int type = LOSS_CROSS_ENTROPY;

    *ret = (struct loss_spec){0};
    if (yaml_require(root, "loss", err))
        return -1;
    if (at.node->kind == YAML_TREE_MAPPING) {
        if (yaml_require(&at, "type", err) || yaml_get_choice(&at, "type", types, &type, err) ||
            decode_keys(&at, (const char *const[]){"type", NULL}, own[type], err) ||
            yaml_get_f64(&at, "label_smoothing", 0, 1, &ret->label_smoothing, err))
            return -1;
    } else if (yaml_get_choice(root, "loss", types, &type, err)) {
        return -1;
    }
    ret->type = (enum loss_type)type;
    return 0;
}

static int check_optimizer(const struct yaml_at *at, const struct optimizer_spec *o, struct err *err)
{
    struct err own = {0};
    const char *key = NULL;

    if (!o->ops->check || !o->ops->check(o, &key, &own))
        return 0;
    struct yaml_at member = yaml_member(at, key);
    return yaml_err(&member, err, "%s", own.msg);
}

int decode_optimizer(const struct yaml_at *root, struct optimizer_spec *ret, struct err *err)
{
    static const char *const common[] = {"type", "lr", "lr_times_world", "weight_decay", "decay",
                                         "clip", NULL};
    struct yaml_at at = yaml_member(root, "optimizer");
    int type = 0;
    int decay = 0;

    if (yaml_require(root, "optimizer", err) || yaml_require(&at, "type", err) ||
        yaml_get_choice(&at, "type", optimizer_types, &type, err))
        return -1;
    struct optimizer_spec o = optimizer_spec_of(optimizer_kinds[type], 0);
    if (decode_keys(&at, common, o.ops->options, err) || yaml_require(&at, "lr", err) ||
        yaml_get_f64(&at, "lr", 0, 1e6, &o.lr, err) ||
        yaml_get_bool(&at, "lr_times_world", &o.lr_times_world, err) ||
        yaml_get_f64(&at, "weight_decay", 0, 1e6, &o.weight_decay, err) ||
        yaml_get_choice(&at, "decay", (const char *const[]){"all", "matrices", NULL}, &decay, err) ||
        yaml_get_f64(&at, "clip", 1e-9, 1e9, &o.clip, err) ||
        decode_options(&at, o.ops->options, o.option, o.number, NULL, err) || check_optimizer(&at, &o, err))
        return -1;
    o.decay_matrices_only = decay;
    *ret = o;
    return 0;
}

static int decode_milestones(const struct yaml_at *schedule, struct schedule_spec *s, struct err *err)
{
    struct yaml_at at = yaml_member(schedule, "milestones");

    if (yaml_require(schedule, "milestones", err) ||
        yaml_expect_sequence(&at, 1, SCHEDULE_MILESTONES_MAX, err))
        return -1;
    for (const struct yaml_tree *c = at.node->first; c; c = c->next) {
        struct yaml_at item = yaml_item(&at, c, s->milestones);
        int64_t least = s->milestones ? s->milestone[s->milestones - 1] + 1 : 1;
        if (yaml_item_i64(&item, least, 1000000000, &s->milestone[s->milestones], err))
            return -1;
        s->milestones++;
    }
    return 0;
}

/* A rate of 0 at the first time would be a step for nothing, so torch's rule has none. */
static int decode_warmup(const struct yaml_at *at, struct schedule_spec *s, struct err *err)
{
    int full = 0;

    if (yaml_get_i64(at, "warmup", 0, 1000000000, &s->warmup, err) ||
        yaml_get_choice(at, "warmup_full", (const char *const[]){"after", "last", NULL}, &full, err))
        return -1;
    s->warmup_last_full = full;
    s->warmup_from = full ? 0 : 1.0 / 3;
    return yaml_get_f64(at, "warmup_from", full ? 0 : 1e-9, 1, &s->warmup_from, err);
}

int decode_schedule(const struct yaml_at *root, struct schedule_spec *ret, struct err *err)
{
    static const char *const types[] = {[SCHEDULE_CONSTANT] = "constant",
                                        [SCHEDULE_STEP] = "step",
                                        [SCHEDULE_MULTI_STEP] = "multi_step",
                                        [SCHEDULE_COSINE] = "cosine",
                                        NULL};
    static const char *const common[] = {"type", "per", "warmup", "warmup_from", "warmup_full", NULL};
    static const struct spec_option own[][3] = {
        [SCHEDULE_CONSTANT] = {{0}},
        [SCHEDULE_STEP] = {{.key = "every"}, {.key = "gamma"}},
        [SCHEDULE_MULTI_STEP] = {{.key = "milestones"}, {.key = "gamma"}},
        [SCHEDULE_COSINE] = {{.key = "total"}, {.key = "min_lr"}}};
    struct yaml_at at = yaml_member(root, "schedule");
    struct schedule_spec s = {.every = 1, .gamma = 1};
    int type = SCHEDULE_CONSTANT;
    int per = 0;

    if (yaml_get_choice(&at, "type", types, &type, err) || decode_keys(&at, common, own[type], err) ||
        yaml_get_choice(&at, "per", (const char *const[]){"epoch", "step", NULL}, &per, err) ||
        decode_warmup(&at, &s, err))
        return -1;
    s.type = (enum schedule_type)type;
    s.per_step = per;
    if ((s.type == SCHEDULE_STEP || s.type == SCHEDULE_MULTI_STEP) &&
        (yaml_require(&at, "gamma", err) || yaml_get_f64(&at, "gamma", 1e-6, 1, &s.gamma, err)))
        return -1;
    if (yaml_get_i64(&at, "every", 1, 1000000000, &s.every, err) ||
        (s.type == SCHEDULE_MULTI_STEP && decode_milestones(&at, &s, err)) ||
        yaml_get_i64(&at, "total", 1, 1000000000, &s.total, err) ||
        yaml_get_f64(&at, "min_lr", 0, 1e6, &s.min_lr, err))
        return -1;
    *ret = s;
    return 0;
}
