/* execspec.c - decode the `exec` member of a kubeconfig's user by client-go's rules, without those for terminals. */
#include "kube/auth/execspec.h"

#include <string.h>

static int read_args(const struct json_at *exec, const char **argv, struct arena *a, struct err *err)
{
    struct json_at args = json_member(exec, "args");
    const cJSON *item;
    int i = 0;

    if (json_expect_array(&args, EXEC_ARGS_MAX, err) < 0)
        return -1;
    cJSON_ArrayForEach(item, args.node)
    {
        struct json_at at = json_item(&args, item, i++);
        if (!cJSON_IsString(item))
            return json_err(&at, err, "expected a string");
        argv[i] = arena_strdup(a, item->valuestring);
    }
    return 0;
}

static int read_env(const struct json_at *exec, const char **env, struct arena *a, struct err *err)
{
    struct json_at list = json_member(exec, "env");
    const cJSON *item;
    int i = 0;

    if (json_expect_array(&list, EXEC_ENV_MAX, err) < 0)
        return -1;
    cJSON_ArrayForEach(item, list.node)
    {
        struct json_at at = json_item(&list, item, i);
        const char *name = "";
        const char *value = "";
        if (json_expect_object(&at, err) < 0 || json_get_str(&at, "name", &name, err) < 0 ||
            json_get_str(&at, "value", &value, err) < 0)
            return -1;
        if (!*name || strchr(name, '='))
            return json_err(&at, err, "name: expected a variable's name, got \"%.40s\"", name);
        env[i++] = arena_printf(a, "%s=%s", name, value);
    }
    return 0;
}

static int check_version(const struct json_at *exec, const char *version, struct err *err)
{
    struct json_at at = json_member(exec, "apiVersion");

    if (strcmp(version, "client.authentication.k8s.io/v1") == 0 ||
        strcmp(version, "client.authentication.k8s.io/v1beta1") == 0)
        return 0;
    return json_err(&at, err, "expected client.authentication.k8s.io/v1 or /v1beta1, got \"%.60s\"", version);
}

/* v1 has no default: whoever writes it must have thought about it. */
static int check_mode(const struct json_at *exec, const char *version, struct err *err)
{
    struct json_at at = json_member(exec, "interactiveMode");
    const char *mode = strcmp(version, "client.authentication.k8s.io/v1beta1") == 0 ? "IfAvailable" : "";

    if (json_get_str(exec, "interactiveMode", &mode, err) < 0)
        return -1;
    if (strcmp(mode, "Never") == 0 || strcmp(mode, "IfAvailable") == 0)
        return 0;
    if (strcmp(mode, "Always") == 0)
        return json_err(&at, err, "Always: this program has no terminal; use a plugin that needs none");
    return json_err(&at, err, "expected Never or IfAvailable, got \"%.40s\"", mode);
}

/* It ends up in a log: one line of printable text. */
static const char *one_line(struct arena *a, const char *text)
{
    char *line = arena_strdup(a, text);

    for (char *p = line; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = ' ';
    for (size_t len = strlen(line); len && line[len - 1] == ' ';)
        line[--len] = '\0';
    return line;
}

static const char *find_command(const char *command, const char *dir, struct arena *a)
{
    if (*command == '/' || !strchr(command, '/'))
        return arena_strdup(a, command);
    return arena_printf(a, "%s/%s", dir, command);
}

int exec_spec_decode(const struct json_at *exec, const char *dir, struct arena *a, struct exec_spec *ret,
                     struct err *err)
{
    struct json_at command_at = json_member(exec, "command");
    const char **argv = arena_array(a, EXEC_ARGS_MAX + 2, const char *);
    const char **env = arena_array(a, EXEC_ENV_MAX + 1, const char *);
    const char *command = "";
    const char *version = "";
    const char *hint = "";
    bool cluster = false;

    if (json_expect_object(exec, err) < 0 || json_get_str(exec, "command", &command, err) < 0 ||
        json_get_str(exec, "apiVersion", &version, err) < 0 ||
        json_get_str(exec, "installHint", &hint, err) < 0 ||
        json_get_bool(exec, "provideClusterInfo", &cluster, err) < 0)
        return -1;
    if (!*command)
        return json_err(&command_at, err, "expected the program to run, got none");
    if (check_version(exec, version, err) < 0 || check_mode(exec, version, err) < 0 ||
        read_args(exec, argv, a, err) < 0 || read_env(exec, env, a, err) < 0)
        return -1;
    argv[0] = find_command(command, dir, a);
    *ret = (struct exec_spec){.argv = argv,
                              .env = env,
                              .api_version = arena_strdup(a, version),
                              .install_hint = one_line(a, hint),
                              .provide_cluster_info = cluster};
    return 0;
}
