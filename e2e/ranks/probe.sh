#!/bin/sh
# probe.sh - the same for --no-python: says which rank it is, and with which words it was started.
echo "rank $RANK of $WORLD_SIZE: $*"
