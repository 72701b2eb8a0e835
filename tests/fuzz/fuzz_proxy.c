/* fuzz_proxy.c - any two lines as NO_PROXY and a proxy's URL: read within their bounds, and what is accepted is shown
 * without its password. */
#include "fuzz.h"

#include "kube/auth/proxy.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const servers[] = {"https://api.example.com:6443/path", "https://10.96.0.1",
                                          "https://[fd00::1]:6443", "http://127.0.0.1:8080"};
    char shown[PROXY_SHOWN_BYTES];
    struct err err = {0};
    char *url = NULL;

    if (size > 10000)
        return 0;
    char *text = strndup((const char *)data, size);
    MUST(text);
    char *proxy = strchr(text, '\n');
    if (proxy)
        *proxy++ = '\0';
    for (size_t i = 0; i < ARRAY_LEN(servers); i++) {
        bool all = proxy_bypassed(text, servers[i]);
        MUST(i < 3 || all);
        int rc = proxy_from_environment(proxy, text, servers[i], &url, &err);
        MUST(rc == 0 ? !url || !all : err.kind == ERR_INVALID && !url);
        if (url) {
            proxy_shown(url, shown);
            MUST(!strchr(shown, '@') || strchr(url + strcspn(url, "/?#"), '@'));
            MUST(proxy_check(url, &err) == 0);
        }
        free(url);
    }
    free(text);
    return 0;
}
