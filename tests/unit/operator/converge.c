/* converge.c - the runner of scenarios. */
#include "converge.h"
#include "bounds.h"
#include "faults.h"
#include "sanitized.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

enum {
    REQUESTS_MAX = 400,
    TURNS_MAX = 20000,
    HANG_JUMPS = 200 /* a watch without a byte is given up after 150 s */,
    TESTS_MAX = 512
};

int converge_step_in_short = 1;

/* Under a sanitizer a run takes seven times as long, and finds what it finds at most places. */
static int step_of_sweeps(void)
{
    const bool full = faults_in_full();

    if (SANITIZED)
        return full ? 3 : 9;
    return full ? 1 : converge_step_in_short;
}

struct story {
    struct lab lab;
    const struct scenario *s;
    const struct trouble *t;
    bool struck, struck_again, finished, crashed;
    bool submitted;
    bool acted, acts;     /* the user did something, and is not done yet */
    bool wrote;           /* the first of them was a write */
    int64_t reconnect_ms; /* 0: nobody is cut off */
    int64_t heal_ms;      /* 0: no fault lasts */
    int asked;            /* requests when it began, and then how many there were meanwhile */
    int64_t thaw_ms;      /* 0: nothing is frozen */
    int changes;          /* of objects, that were looked at */
    int64_t changed_ms;   /* the last of them */
    int64_t costs_ms;     /* by how much the troubles so far may make the end later */
};

const struct scenario *converge_scenario(const char *name)
{
    for (size_t i = 0; i < N_SCENARIOS; i++)
        if (strcmp(SCENARIOS[i].name, name) == 0)
            return &SCENARIOS[i];
    fail_msg("no scenario %s", name);
    return NULL;
}

void converge_submit(struct lab *l, const struct scenario *s)
{
    char body[1024];

    snprintf(
        body, sizeof(body),
        "{'apiVersion':'" TRAINJOB_API_VERSION "','kind':'" TRAINJOB_KIND
        "','metadata':{'name':'j','namespace':'ns'%s},'spec':{'replicaSpecs':[{'type':'node','replicas':%d,'"
        "restartPolicy':'ExitCode','template':{'spec':{'containers':[{'name':'pytorch','image':'i'}]}}}]%s}}",
        s->queued ? ",'labels':{'" LABEL_QUEUE "':'team'}" : "", s->replicas, s->policy);
    lab_put(l, LAB_JOB, body);
}

/* Completed, or gone with all that was its. */
static bool finished(struct lab *l)
{
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);

    if (!job)
        return fake_count(l->server, LAB_PODS) + fake_count(l->server, LAB_SERVICES) +
                   fake_count(l->server, LAB_DEPLOYMENTS) +
                   (l->queues.runs ? fake_count(l->server, LAB_WORKLOADS) : 0) ==
               0;
    return json_str(json_child(job, "status"), "completionTime") != NULL;
}

static void on_drained(void *ctx)
{
    elector_release(ctx, NULL, NULL);
}

static void follow(struct story *st, enum follows follows)
{
    struct lab *l = &st->lab;
    struct lab_operator *leader = &l->operators[0];

    st->costs_ms += bounds_follows_ms(follows);
    switch (follows) {
    case FOLLOWS_NOTHING:
        break;
    case FOLLOWS_CRASH:
        lab_crash(l);
        break;
    case FOLLOWS_TAKEOVER:
        lab_kill(l, 0);
        break;
    case FOLLOWS_CUT_OFF:
        fake_direct_cut_off(leader->direct, true);
        st->reconnect_ms = l->offset_ms + BOUNDS_CUT_OFF_MS;
        break;
    case FOLLOWS_HANDOVER:
        kube_reconciler_drain(controller_reconciler(leader->controller), on_drained, leader->elector);
        break;
    }
}

/* What is read from now on is old, by whoever starts now or begins again. */
static void freeze(struct story *st)
{
    struct lab *l = &st->lab;

    st->thaw_ms = l->offset_ms + BOUNDS_FROZEN_MS;
    st->costs_ms += BOUNDS_FROZEN_MS;
    fake_freeze(l->server, st->t->stale_kind, st->t->stale_by);
    if (st->t->stale_reconnect) {
        fake_compact(l->server);
        fake_close_watches(l->server);
    } else if (l->n_operators > 1) {
        follow(st, FOLLOWS_TAKEOVER);
    } else {
        follow(st, FOLLOWS_CRASH);
    }
}

static void fail_story(struct story *st, const char *why)
{
    lab_explain(&st->lab);
    fail_msg("%s/%s at request %d, event %d, change %d: %s", st->s->name, st->t->name,
             st->t->fault.request + st->t->crash_at, st->t->tamper.event, st->t->act_at, why);
}

/* Who renews a lease does that by its own clock. */
static int asked(struct lab *l)
{
    return fake_log_count(l->server, NULL, NULL) - fake_log_count(l->server, NULL, LAB_LEASES);
}

/* A fault has lasted long enough: what was made of it, and an end to it. */
static void heal(struct story *st)
{
    struct lab *l = &st->lab;
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);
    cleanup_free char *status = cJSON_PrintUnformatted(json_child(job, "status"));

    st->heal_ms = 0;
    st->asked = asked(l) - st->asked;
    if (st->asked > st->t->lasts_ms / 1000)
        fail_story(st, "it asked more than once a second while nothing worked");
    if (st->t->told && (!status || !strstr(status, st->t->told)))
        fail_story(st, "the status does not say what was refused");
    fake_plan_fault(l->server, NULL);
    l->idle = 0;
}

static bool struck(struct lab *l, const char *method, const char *path_part)
{
    struct fake_request r;

    return fake_log_at(l->server, fake_fault_last(l->server), &r) &&
           (!method || strcmp(r.method, method) == 0) && (!path_part || strstr(r.path, path_part));
}

static bool struck_a_watch(struct lab *l)
{
    return struck(l, "WATCH", NULL);
}

static void endure(struct story *st)
{
    struct lab *l = &st->lab;

    if (!st->t->lasts_ms)
        return;
    if (!st->struck && fake_faults_done(l->server) > 0) {
        st->struck = true;
        st->heal_ms = l->offset_ms + st->t->lasts_ms;
        st->asked = asked(l);
        st->costs_ms += bounds_lasting_ms(&st->t->fault, struck_a_watch(l), st->t->lasts_ms);
    }
    if (st->heal_ms && l->offset_ms >= st->heal_ms)
        heal(st);
}

/* What was planned has happened: the user's turn. What ended before may be no end any more. Nothing waits for an Event. */
static void act(struct story *st)
{
    struct lab *l = &st->lab;

    if (!st->t->act || !st->submitted || struck(l, "POST", "/events"))
        return;
    st->acted = true;
    st->t->act(l, st->s);
    st->acts = st->t->acted != NULL;
    st->finished = false;
    l->idle = 0;
}

static void strike(struct story *st)
{
    struct lab *l = &st->lab;
    const struct trouble *t = st->t;

    if (t->crash_at && !st->crashed && fake_log_count(l->server, NULL, NULL) >= t->crash_at) {
        st->crashed = true;
        st->struck = t->lasts_ms == 0;
        st->wrote = fake_log_is_write(l->server, t->crash_at - 1);
        if (t->stale_kind)
            freeze(st);
        else
            lab_crash(l);
        if (t->then.request)
            fake_plan_fault(l->server, &t->then);
    }
    if (t->act_at && !st->struck && st->changes >= t->act_at) {
        st->struck = true;
        act(st);
    }
    if (st->thaw_ms && l->offset_ms >= st->thaw_ms) {
        st->thaw_ms = 0;
        l->idle = 0; /* what was held back is about to be sent */
        fake_freeze(l->server, NULL, 0);
    }
    if (t->fault.request && !st->struck && fake_faults_done(l->server) > 0) {
        st->struck = true;
        st->wrote = fake_log_is_write(l->server, fake_fault_last(l->server));
        st->costs_ms += bounds_fault_ms(&t->fault, struck_a_watch(l));
        follow(st, t->follows);
        if (t->then.request)
            fake_plan_fault(l->server, &t->then);
        else
            act(st);
    } else if (t->then.request && st->struck && !st->struck_again && fake_faults_done(l->server) > 0) {
        st->struck_again = true;
        st->costs_ms += bounds_fault_ms(&t->then, struck_a_watch(l));
        follow(st, t->then_follows);
        act(st);
    }
    if (st->acts)
        st->acts = !t->acted(l);
    if (st->reconnect_ms && l->offset_ms >= st->reconnect_ms) {
        st->reconnect_ms = 0;
        fake_direct_cut_off(l->operators[0].direct, false);
    }
}

static bool has_struck(struct story *st)
{
    const struct trouble *t = st->t;

    if (t->tamper.event)
        return st->lab.tamper.done > 0;
    return t->then.request ? st->struck_again : st->struck;
}

/* What was quiet before the end does not count. */
static void note_end(struct story *st)
{
    if (st->finished || !finished(&st->lab))
        return;
    st->finished = true;
    st->lab.idle = 0;
}

/* Events and leases continue by their own clocks. */
static void note_changes(struct story *st)
{
    struct fake_change c;

    for (; fake_change_at(st->lab.server, st->changes, &c); st->changes++)
        if (strcmp(c.kind, "Event") != 0 && strcmp(c.kind, "Lease") != 0)
            st->changed_ms = st->lab.offset_ms;
}

static bool is_over(struct story *st)
{
    return st->finished && lab_settled(&st->lab) && !st->acts && !st->reconnect_ms && !st->thaw_ms &&
           !st->heal_ms;
}

static bool may_hang(const struct trouble *t)
{
    return t->fault.fault == FAKE_HANG_BEFORE || t->fault.fault == FAKE_HANG_AFTER ||
           t->then.fault == FAKE_HANG_BEFORE || t->then.fault == FAKE_HANG_AFTER;
}

void converge_run(const struct scenario *s, const struct trouble *t, struct ending *ret)
{
    struct story st = {.s = s, .t = t};
    struct lab *l = &st.lab;
    uint64_t version = 0;

    if (t->sockets)
        lab_start(l, s->script);
    else
        lab_start_direct(l, s->script, t->operators ? t->operators : 1);
    if (s->queued)
        lab_kueue_install(l);
    l->collects = true;
    l->gang = s->replicas;
    l->bookmarks = t->act != NULL;
    /* Patience grows with failures. */
    l->settle_jumps = may_hang(t) || t->lasts_ms || t->tamper.repeats ? HANG_JUMPS : 0;
    l->tamper = t->tamper;
    if (t->fault.request || t->lasts_ms)
        fake_plan_fault(l->server, &t->fault);
    for (int turns = 0; !is_over(&st); turns++) {
        bool jumped = lab_turn(l);
        /* Not before the operator has its first lists, or waits to list again: so the job is new to it. */
        if (jumped && !st.submitted) {
            converge_submit(l, s);
            st.submitted = true;
        }
        bool news = jumped || fake_version(l->server) != version;
        version = fake_version(l->server);
        news = news && st.submitted;
        if (news && s->meddle)
            s->meddle(l);
        if (news) {
            note_changes(&st);
            note_end(&st);
        }
        strike(&st);
        endure(&st);
        if (turns > TURNS_MAX)
            fail_story(&st, "it did not come to an end");
    }
    *ret = (struct ending){
        .struck = has_struck(&st), .acted = st.acted, .events = l->tamper.seen, .wrote = st.wrote};
    ret->meanwhile = st.asked;
    ret->end_ms = st.changed_ms;
    ret->late_ms = BOUNDS_SLACK_MS + st.costs_ms + bounds_tamper_ms(&t->tamper);
    snprintf(ret->tampered, sizeof(ret->tampered), "%s", l->tamper.told);
    ret->requests = asked(l);
    const char *broken = lab_broken_rule(l, t->ghosts ? FAKE_RULES_NO_PODS : t->leave_out);
    if (!broken && s->queued)
        broken = lab_broken_queue_rule(l, !t->ghosts && !t->unqueued);
    if (broken)
        fail_story(&st, broken);
    if (ret->requests > REQUESTS_MAX)
        fail_story(&st, "it asked for too much");
    lab_ending(l, true, ret->text, sizeof(ret->text));
    lab_ending(l, false, ret->left, sizeof(ret->left));
    for (int i = 0; i < l->n_operators; i++)
        ret->remembered +=
            l->operators[i].controller ? controller_counts(l->operators[i].controller).remembered : 0;
    lab_stop(l);
}

bool converge_may_leave_ghosts(const struct scenario *s)
{
    return strncmp(s->name, "delete-", strlen("delete-")) == 0;
}

bool converge_check(const struct scenario *s, const struct trouble *t, const struct ending *untroubled,
                    struct ending *ret)
{
    converge_run(s, t, ret);
    const char *want = t->ghosts ? untroubled->left : s->want;
    const char *got = t->ghosts ? ret->left : ret->text;
    if (strcmp(got, want) != 0)
        fail_msg("%s, %s at request %d, then %d, event %d:\nwant %s\ngot  %s", s->name, t->name,
                 t->fault.request + t->crash_at, t->then.request, t->tamper.event, want, got);
    /* Over sockets a part of the time is the machine's. */
    if (untroubled && !t->sockets && ret->end_ms > untroubled->end_ms + ret->late_ms)
        fail_msg("%s, %s at request %d, then %d, event %d: ended after %lld s, which is %lld s without "
                 "trouble and may be %lld s more",
                 s->name, t->name, t->fault.request + t->crash_at, t->then.request, t->tamper.event,
                 (long long)ret->end_ms / 1000, (long long)untroubled->end_ms / 1000,
                 (long long)ret->late_ms / 1000);
    return ret->struck;
}

struct ending converge_untroubled(const struct scenario *s, int operators)
{
    struct trouble none = {.name = "no trouble", .operators = operators};
    struct ending e;

    converge_check(s, &none, NULL, &e);
    return e;
}

/* Whether this run was a case of its own. */
static bool is_a_case(struct converge_row *row, const struct ending *e)
{
    if (row->trouble->counting == COUNTS_WRITES)
        return e->struck && e->wrote;
    if (row->trouble->counting == COUNTS_NOTHING || !e->struck)
        return false;
    if (row->trouble->counting == COUNTS_ONCE)
        return row->passed == 0;
    for (int i = 0; i < row->n_events; i++)
        if (strcmp(row->events[i], e->tampered) == 0)
            return false;
    assert_true(row->n_events < CONVERGE_EVENTS_MAX);
    snprintf(row->events[row->n_events++], sizeof(row->events[0]), "%s", e->tampered);
    return true;
}

bool converge_case(struct converge_row *row, const struct trouble *t, const struct ending *untroubled,
                   struct ending *ret)
{
    row->cases++; /* a run that fails does not come back */
    bool struck = converge_check(row->scenario, t, untroubled, ret);
    if (is_a_case(row, ret))
        row->passed++;
    else
        row->cases--;
    return struck;
}

void converge_sweep(struct converge_row *row, struct trouble *t, int *place, int each, int enough)
{
    struct ending untroubled = converge_untroubled(row->scenario, t->operators);
    struct ending e;

    *place = row->before * each;
    do
        *place += row->step * each;
    while (converge_case(row, t, &untroubled, &e));
    assert_true(*place > enough);
    print_message("%s, %s: %d runs, each: %s\n", row->scenario->name, t->name, *place / (row->step * each),
                  e.text);
}

static void report(const struct converge_row *rows, size_t n_rows, const char *class)
{
    int cases = 0;
    int passed = 0;

    for (size_t i = 0; i < n_rows; i++) {
        if (!rows[i].trouble->class || strcmp(rows[i].trouble->class, class) != 0)
            continue;
        cases += rows[i].cases;
        passed += rows[i].passed;
    }
    faults_report(class, cases, passed);
}

static bool is_first_of_class(const struct trouble *troubles, size_t t)
{
    for (size_t i = 0; i < t; i++)
        if (troubles[i].class && troubles[t].class && strcmp(troubles[i].class, troubles[t].class) == 0)
            return false;
    return troubles[t].class != NULL;
}

int converge_main(int argc, char **argv, const struct trouble *troubles, size_t n_troubles,
                  void (*test)(void **state))
{
    static struct converge_row rows[TESTS_MAX];
    static struct CMUnitTest tests[TESTS_MAX];
    static char names[TESTS_MAX][64];
    const int step = step_of_sweeps();
    size_t n = 0;

    for (size_t s = 0; s < N_SCENARIOS; s++) {
        for (size_t t = 0; t < n_troubles && n < TESTS_MAX; t++) {
            if ((argc > 1 && strcmp(argv[1], SCENARIOS[s].name) != 0) ||
                (troubles[t].only &&
                 strncmp(troubles[t].only, SCENARIOS[s].name, strlen(troubles[t].only)) != 0) ||
                (argc > 2 && strcmp(argv[2], troubles[t].name) != 0))
                continue;
            rows[n] = (struct converge_row){.scenario = &SCENARIOS[s],
                                            .trouble = &troubles[t],
                                            .seed = argc > 3 ? argv[3] : NULL,
                                            .before = (int)(s + t) % step + 1 - step,
                                            .step = step};
            snprintf(names[n], sizeof(names[n]), "%s/%s", SCENARIOS[s].name, troubles[t].name);
            tests[n] = (struct CMUnitTest){names[n], test, NULL, NULL, &rows[n]};
            n++;
        }
    }
    if (n == 0) {
        fprintf(stderr, "usage: %s [scenario [trouble [seed]]]: no such scenario or trouble\n", argv[0]);
        return 2;
    }
    int failed = _cmocka_run_group_tests(argv[0], tests, n, NULL, NULL);
    for (size_t t = 0; t < n_troubles; t++)
        if (is_first_of_class(troubles, t))
            report(rows, n, troubles[t].class);
    return failed;
}
