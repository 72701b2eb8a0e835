#!/bin/sh
# base-hook.sh - for build.sh's base image: take this machine's files and all documentation but licences out of the new root $1,
# and have dpkg leave them out of packages that are installed into it later.
set -eu

rm -rf "$1/etc/hostname" "$1/etc/resolv.conf" "$1/usr/share/man" "$1/usr/share/info" "$1/usr/share/locale"
mkdir "$1/usr/share/man" "$1/usr/share/info" "$1/usr/share/locale"
find "$1/usr/share/doc" ! -type d ! -name copyright -delete
cat >"$1/etc/dpkg/dpkg.cfg.d/documentation" <<'END'
path-exclude=/usr/share/man/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/locale/*
path-exclude=/usr/share/doc/*
path-include=/usr/share/doc/*/copyright
END
