# Functions of ./dev. Sourced with the repository root as working directory.
# shellcheck shell=bash

cache="${XDG_CACHE_HOME:-$HOME/.cache}/nvdra"
export CCACHE_DIR="${CCACHE_DIR:-$cache/ccache}"
export CCACHE_NOHASHDIR=1
export CCACHE_BASEDIR="$PWD"
export CCACHE_MAXSIZE="${CCACHE_MAXSIZE:-4G}"
export CCACHE_SLOPPINESS=pch_defines,time_macros
build="${NVDRA_BUILD:-build}"

say() { printf '\033[1m==> %s\033[0m\n' "$*" >&2; }
die() { printf 'dev: %s\n' "$*" >&2; exit 1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else die "this step needs root and there is no sudo: $*"
  fi
}

# need_packages FILE...: installs what is missing of the packages listed in the files.
need_packages() {
  local missing=() package
  while read -r package; do
    case "$package" in '' | '#'*) continue ;; esac
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done < <(cat "$@")
  [ ${#missing[@]} -eq 0 ] && return
  say "installing ${#missing[@]} packages: ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

configure() {
  local dir="$1"; shift
  need_packages toolchain/packages.txt
  if [ -f "$dir/build.ninja" ]; then return; fi
  say "configuring $dir"
  meson setup --native-file toolchain/clang19.ini "$dir" "$@" >"$dir.log" 2>&1 || { cat "$dir.log" >&2; rm -f "$dir.log"; die "configuring $dir failed"; }
  rm -f "$dir.log"
}

cmd_configure() { configure "${1:-$build}" "${@:2}"; }

cmd_build() {
  configure "$build"
  say "building in $build"
  ninja -C "$build" "$@"
}

main() {
  local command="${1:-help}"
  shift || true
  if declare -F "cmd_$command" >/dev/null; then "cmd_$command" "$@"; else die "no command '$command'; ./dev help lists them"; fi
}
