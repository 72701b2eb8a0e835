/* program.c - decide whether a file needs Python; find Python; execute, explain and copy programs. */
#include "launcher/program.h"
#include "common/fsutil.h"
#include "common/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_BYTES = 128, INSTALL_BYTES = 64 << 20 };

static const char SHELL[] = "/bin/sh";
static const char DEFAULT_PATH[] = "/usr/local/bin:/bin:/usr/bin"; /* used if the environment has no PATH */

/* The first bytes of a file, without waiting for a FIFO; "" when it cannot be read. */
static void read_head(const char *path, char head[static HEAD_BYTES])
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t n = fd < 0 ? 0 : read(fd, head, HEAD_BYTES - 1);

    head[n > 0 ? n : 0] = '\0';
}

static bool is_elf(const char *head)
{
    return strncmp(head, "\177ELF", 4) == 0;
}

/* A byte order mark, after which the kernel does not find #! and a shell does not find a command. */
static bool is_marked(const char *head)
{
    struct err utf16;

    return text_mark(head, strlen(head), &utf16) != 0;
}

/* Cut the head of a script to its interpreter; NULL: it names none. */
static const char *interpreter(char *head)
{
    if (strncmp(head, "#!", 2) != 0)
        return NULL;
    char *name = head + 2 + strspn(head + 2, " \t");
    name[strcspn(name, " \t\r\n")] = '\0';
    return name;
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool program_wants_python(const char *path)
{
    char main[4096], head[HEAD_BYTES];
    struct stat st;

    if (stat(path, &st))
        return false; /* a program in PATH, or nothing */
    if (S_ISDIR(st.st_mode))
        return snprintf(main, sizeof(main), "%s/__main__.py", path) < (int)sizeof(main) &&
               access(main, R_OK) == 0;
    read_head(path, head);
    if (!S_ISREG(st.st_mode) || is_elf(head))
        return false;
    const bool marked = strncmp(head, TEXT_MARK, 3) == 0;
    if (strncmp(marked ? head + 3 : head, "#!", 2) != 0)
        return true;
    head[strcspn(head, "\n")] = '\0';
    return (marked || access(path, X_OK) < 0) && strstr(head, "python");
}

/* Execute a file. If it is not ELF and the kernel reports ENOEXEC, run it with sh, as glibc's execvp does;
 * musl's does not. */
static void exec_file(const char *path, char *const *words, char *const *env)
{
    char head[HEAD_BYTES];
    size_t n = 0;

    execve(path, words, env);
    if (errno != ENOEXEC)
        return;
    read_head(path, head);
    while (words[n])
        n++;
    char **by_sh = is_elf(head) || is_marked(head) ? NULL : calloc(n + 2, sizeof(*by_sh));
    if (by_sh) {
        by_sh[0] = (char *)(uintptr_t)SHELL;
        by_sh[1] = (char *)(uintptr_t)path;
        memcpy(by_sh + 2, words + 1, n * sizeof(*by_sh)); /* with the NULL */
        execve(SHELL, by_sh, env);
        free(by_sh);
    }
    errno = ENOEXEC;
}

static const char *search_path(void)
{
    const char *path = getenv("PATH");

    return path ? path : DEFAULT_PATH;
}

/* Make the file's path in the next folder of *path; NULL marks the end. False: no folder is left. */
static bool next_in_path(const char **path, const char *name, char file[static PATH_MAX])
{
    while (*path) {
        const size_t len = strcspn(*path, ":");
        const int n = snprintf(file, PATH_MAX, "%.*s%s%s", (int)len, *path, len ? "/" : "", name);
        *path = (*path)[len] ? *path + len + 1 : NULL;
        if (n < PATH_MAX)
            return true;
    }
    return false;
}

int program_python(const char **ret, struct err *err)
{
    static const char *const names[] = {"python3", "python"};
    char file[PATH_MAX];

    *ret = getenv("PYTHON_EXEC");
    if (*ret && **ret)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        for (const char *path = search_path(); next_in_path(&path, names[i], file);)
            if (access(file, X_OK) == 0) {
                *ret = names[i];
                return 0;
            }
    return err_set(
        err, ERR_NOT_FOUND,
        "the program needs Python, and there is no python3 in PATH (PYTHON_EXEC names one; --no-python "
        "runs the program by itself)");
}

/* Execute the first file of that name in $PATH that is executable. errno: ENOENT if there is no such file,
 * EACCES if one may not be executed. */
static void exec_in_path(char *const *words, char *const *env)
{
    char file[PATH_MAX];
    int code = ENOENT;

    for (const char *path = search_path(); next_in_path(&path, words[0], file);) {
        exec_file(file, words, env);
        if (errno == EACCES)
            code = EACCES;
        else if (errno != ENOENT && errno != ENOTDIR)
            return;
    }
    errno = code;
}

void program_exec(char *const *words, char *const *env)
{
    if (words[0][0] && !strchr(words[0], '/')) {
        exec_in_path(words, env);
        if (errno != ENOENT || access(words[0], F_OK) < 0)
            return;
    }
    exec_file(words[0], words, env);
}

int program_explain(const char *name, int code, struct err *err)
{
    char head[HEAD_BYTES];
    const char *why = "", *by = NULL;

    read_head(name, head);
    const size_t first = strcspn(head, "\n");
    if (is_folder(name))
        why = ": a folder, without a __main__.py";
    else if (code == ENOENT && is_elf(head))
        why = ": its loader is not here (it was built for another system)";
    else if (code == ENOEXEC && is_marked(head))
        why = ": it begins with a byte order mark: save it as UTF-8 without one";
    else if (code == ENOENT && strncmp(head, "#!", 2) == 0 && head[first] && head[first - 1] == '\r')
        return err_errno(
            err, ERR_INVALID, code,
            "cannot run %.60s: its first line ends with a carriage return, so it names no program: "
            "convert the file from Windows' line ends",
            name);
    else if (code == ENOENT && (by = interpreter(head)))
        why = ": its first line names ";
    return err_errno(err, ERR_INVALID, code, "cannot run %.120s%s%.60s", name, why, by ? by : "");
}

int program_install(const char *program, const char *path, struct err *err)
{
    cleanup_fs_atomic struct fs_atomic f = {.fd = -1};
    cleanup_buf struct buf bytes = BUF_INIT(INSTALL_BYTES);

    if (fs_read(program, &bytes, err) < 0 || fs_atomic_begin(&f, path, err) < 0)
        return -1;
    if (fs_write_all(f.fd, bytes.data, bytes.len) < 0 || fchmod(f.fd, 0555) < 0)
        return err_errno(err, ERR_FATAL, errno, "%s", path);
    return fs_atomic_commit(&f, err);
}
