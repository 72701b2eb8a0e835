/* folder.c - open, list and remove folders by descriptor. */
#include "trainer/state/files/folder.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int folder_open(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

DIR *folder_names(int folder)
{
    const int fd = folder_open(folder, ".");
    DIR *names = fd < 0 ? NULL : fdopendir(fd);

    if (!names && fd >= 0)
        close(fd);
    return names;
}

void folder_remove(int at, const char *name, bool inner)
{
    cleanup_close int fd = folder_open(at, name);
    cleanup_closedir DIR *names = fd < 0 ? NULL : folder_names(fd);

    if (fd < 0)
        (void)unlinkat(at, name, 0);
    for (struct dirent *e; names && (e = readdir(names));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            if (unlinkat(fd, e->d_name, 0) && inner)
                folder_remove(fd, e->d_name, false);
    (void)unlinkat(at, name, AT_REMOVEDIR);
}

void folder_clear(int folder, const char *prefix)
{
    cleanup_closedir DIR *names = folder_names(folder);

    for (struct dirent *e; names && (e = readdir(names));)
        if (strncmp(e->d_name, prefix, strlen(prefix)) == 0 && strcmp(e->d_name, ".") != 0 &&
            strcmp(e->d_name, "..") != 0)
            folder_remove(folder, e->d_name, false);
}
