#!/bin/sh
# readme.sh ROOT - every piece of C in kube/README.md stands, line by line, in the file that the comment above it names.
set -eu
cd "$1"
# Prints what is wrong, else "N pieces".
compare() {
    awk '
    function trim(s) { gsub(/^[ \t]+|[ \t]+$/, "", s); return s }
    function find(file, n, want,   m, have, line, i, k) {
        m = 0
        while ((getline line < file) > 0)
            if (trim(line) != "")
                have[++m] = trim(line)
        close(file)
        for (i = 1; i + n - 1 <= m; i++) {
            for (k = 1; k <= n && have[i + k - 1] == want[k]; k++)
                ;
            if (k > n)
                return 1
        }
        return 0
    }
    /^<!-- from .* -->$/ { file = $3 }
    /^```/ && inside {
        inside = 0
        pieces++
        if (file == "" || n == 0 || !find(file, n, want)) {
            printf "line %d: not in %s: %s\n", NR, file == "" ? "any file named above it" : file, want[1]
            bad = 1
        }
        file = ""
        next
    }
    /^```c$/ { inside = 1; n = 0; next }
    inside && trim($0) != "" { want[++n] = trim($0) }
    END { if (!bad) print pieces + 0 " pieces" }'
}
# The comparison itself must be able to fail.
spoilt=$(sed 's/kube_work_done(w);/work_finished(w);/' kube/README.md | compare)
case $spoilt in *pieces*) echo "readme.sh: a changed piece would pass" >&2; exit 1 ;; esac
result=$(compare <kube/README.md)
case $result in
"0 pieces") echo "kube/README.md: expected pieces of C, found none" >&2; exit 1 ;;
*" pieces") echo "$result" ;;
*) printf 'kube/README.md: %s\n' "$result" >&2; exit 1 ;;
esac
