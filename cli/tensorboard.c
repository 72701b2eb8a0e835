/* tensorboard.c - kubectl ptj tensorboard: reach a job's TensorBoard from this machine. */
#include "cli/session.h"

#include "common/json.h"
#include "operator/plan/desired.h"

#include <stdio.h>
#include <string.h>

enum { NOTE_BYTES = 800 }; /* so much of a note leaves room for the command behind it */

/* The note without the operator's own command, which lacks the namespace: ours follows it. */
static int note_length(const char *note)
{
    const char *command = strstr(note, " (see kubectl ");
    const size_t len = command ? (size_t)(command - note) : strlen(note);

    return len < NOTE_BYTES ? (int)len : NOTE_BYTES;
}

/* port-forward would wait, or report only that there are no pods. */
static int check_ready(const struct session *s, const cJSON *job, const char *name, struct err *err)
{
    const cJSON *spec = json_child(json_child(job, "spec"), "tensorboardSpec");
    const cJSON *status = json_child(json_child(job, "status"), "tensorboard");
    const char *reason = json_str(status, "reason");
    const char *note = json_str(status, "note");

    if (!cJSON_IsObject(spec))
        return err_set(err, ERR_INVALID, "%.63s has no TensorBoard: set spec.tensorboardSpec.logDir.pvc",
                       name);
    if (cJSON_IsTrue(json_child(spec, "suspend")))
        return err_set(err, ERR_INVALID,
                       "the TensorBoard of %.63s is suspended: set spec.tensorboardSpec.suspend to false",
                       name);
    if (!cJSON_IsTrue(json_child(status, "ready")))
        return err_set(err, ERR_INVALID,
                       "the TensorBoard of %.63s is not ready yet%s%.30s%s%.*s (kubectl -n %.63s describe "
                       "pods -l " LABEL_TENSORBOARD "=%.63s%s)",
                       name, reason ? ": " : "", reason ? reason : "", note ? ": " : "",
                       note ? note_length(note) : 0, note ? note : "", s->ns, name, buf_str(&s->options));
    return 0;
}

static int run(struct session *s, const struct args *a, struct err *err)
{
    const char *name = a->operands[0];
    cleanup_json cJSON *job = NULL;
    const int64_t port = args_i64(a, "port", TENSORBOARD_PORT);
    char service[128], ports[32];

    if (session_job(s, name, &job, err) < 0 || check_ready(s, job, name, err) < 0)
        return -1;
    snprintf(service, sizeof(service), "service/%.63s-tensorboard", name);
    snprintf(ports, sizeof(ports), "%lld:%d", (long long)port, TENSORBOARD_PORT);
    printf("TensorBoard of %s: http://localhost:%lld/ (Ctrl-C ends it)\n", name, (long long)port);
    return session_become(s, a, (const char *const[]){"port-forward", service, ports, NULL}, err);
}

static const struct option_row OPTIONS[] = {
    {"port", 'p', "PORT", option_integer, .min = 1, .max = 65535, .help = "of this machine (default: 6006)"},
    {0},
};

static const struct option_example EXAMPLES[] = {
    {"kubectl ptj tensorboard bert", "At http://localhost:6006, until Ctrl-C."},
    {"kubectl ptj tensorboard bert --port 7007", "At another port of this machine."},
    {"kubectl ptj tensorboard bert -n team-a", "Of a job in another namespace."},
    {0},
};

const struct verb VERB_TENSORBOARD = {
    .name = "tensorboard",
    .operands = "NAME",
    .operands_min = 1,
    .operands_max = 1,
    .words = VERB_JOBS,
    .summary = "forward a local port to a job's TensorBoard",
    .about =
        "Runs `kubectl port-forward` to the job's TensorBoard, until Ctrl-C. If there is no TensorBoard, "
        "or it is suspended or not ready, the error says what to do. Needs the permission to create "
        "pods/portforward.",
    .options = OPTIONS,
    .examples = EXAMPLES,
    .run = run,
};
