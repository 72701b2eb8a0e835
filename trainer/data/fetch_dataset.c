/* fetch_dataset.c - the mirrors of MNIST and Fashion-MNIST, and the MD5 checksums that torchvision expects. */
#include "trainer/data/fetch.h"

#include "common/fsutil.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const struct family {
    const char *folder;
    const char *mirrors[FETCH_MIRRORS_MAX];
    const char *md5[DATASET_PARTS];
} MNIST =
    {
        .folder = "MNIST/raw",
        .mirrors = {"https://ossci-datasets.s3.amazonaws.com/mnist",
                    "https://storage.googleapis.com/cvdf-datasets/mnist"},
        .md5 = {"f68b3c2dcbeaaa9fbdd348bbdeb94873", "d53e105ee54ea40749a09fcbcd1e9432",
                "9fb629c4189551a2d022fa330f9573f3", "ec29112dd5afa0611ce80d1b7f02629c"},
},
  FASHION = {
      .folder = "FashionMNIST/raw",
      .mirrors = {"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"},
      .md5 = {"8d4fb7e6c68d591d4c3dfef9ec88bf0d", "25c81989df183df01b3e8a0aad5dffbe",
              "bef4ecab320f06d8554ea6380940ec79", "bb300cfdad3c16e7a12a480ee83cd310"},
};

static int fetch_part(const struct family *of, int part, const char *folder, const char *mirror,
                      const struct fetch_limits *limits, struct err *err)
{
    char path[PATH_MAX];
    char urls[FETCH_MIRRORS_MAX][PATH_MAX];
    struct fetch f = {.path = path, .md5 = of->md5[part], .limits = *limits};

    if (snprintf(path, sizeof(path), "%s/%s.gz", folder, DATASET_FILE[part]) >= (int)sizeof(path))
        return err_set(err, ERR_INVALID, "%.60s...: path too long", folder);
    path[strlen(path) - 3] = '\0';
    if (access(path, F_OK) == 0) /* inflated by somebody */
        return 0;
    path[strlen(path)] = '.';
    for (int i = 0; i < FETCH_MIRRORS_MAX; i++) {
        const char *base = mirror ? (i ? NULL : mirror) : of->mirrors[i];
        if (!base)
            break;
        if (snprintf(urls[i], sizeof(urls[i]), "%s/%s.gz", base, DATASET_FILE[part]) >= (int)sizeof(urls[i]))
            return err_set(err, ERR_INVALID, "%.60s...: address too long", base);
        f.urls[i] = urls[i];
    }
    return fetch(&f, err);
}

int fetch_dataset(const char *dir, enum dataset_name name, const char *mirror,
                  const struct fetch_limits *limits, struct err *err)
{
    const struct family *of = name == DATASET_FASHION_MNIST ? &FASHION : &MNIST;
    char folder[PATH_MAX];

    if (snprintf(folder, sizeof(folder), "%s/%s", dir, of->folder) >= (int)sizeof(folder))
        return err_set(err, ERR_INVALID, "%.60s...: path too long", dir);
    if (fs_mkdirs(folder, err))
        return -1;
    for (int part = 0; part < DATASET_PARTS; part++)
        if (fetch_part(of, part, folder, mirror, limits, err))
            return -1;
    return 0;
}
