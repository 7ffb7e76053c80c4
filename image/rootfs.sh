#!/usr/bin/env bash
# rootfs.sh DIR [ARCH]: makes the image's file system, without nvdra, in the new folder DIR.
#
# nvdra itself is static. The libraries are for what it starts: nvidia-imex, nvidia-imex-ctl and
# nvidia-smi, which come from the node's driver root and need a glibc. There is no shell.
#
# ARCH is a Debian architecture (amd64, arm64); default: this machine's. Packages are kept in
# ${XDG_CACHE_HOME:-~/.cache}/nvdra/debs. Prints one line for each package: name=version.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
debs="${XDG_CACHE_HOME:-$HOME/.cache}/nvdra/debs"

libraries=(
  libanl.so.1 libc.so.6 libdl.so.2 libm.so.6 libnss_dns.so.2 libnss_files.so.2 libpthread.so.0
  libresolv.so.2 librt.so.1 libutil.so.1 libgcc_s.so.1 libstdc++.so.6
)

die() { printf 'image: %s\n' "$*" >&2; exit 1; }

# fetch PACKAGE...: prints the paths of their .deb files in the cache.
fetch() {
  fetch_listed "$@" && return
  echo "image: apt's lists are missing or old: running apt-get update" >&2
  if [ "$(id -u)" = 0 ]; then apt-get update -qq >&2; else sudo -n apt-get update -qq >&2; fi ||
    die "cannot get $*: run apt-get update as root (for another architecture first dpkg --add-architecture)"
  fetch_listed "$@" || die "cannot get $*: check the network and apt's sources"
}

# The checksums are those in apt's lists. One call for all packages: apt reads its lists each time.
fetch_listed() {
  local uri file size sum listed
  listed="$(apt-get download --print-uris "$@" 2>/dev/null)" || return 1
  while read -r uri file size sum; do
    sum="${sum#SHA256:}  $debs/$file"
    if ! sha256sum --check --status <<<"$sum" 2>/dev/null; then
      echo "image: downloading $file ($size bytes)" >&2
      (cd "$debs" && apt-get download -qq -o APT::Sandbox::User=root "${file%%_*}:$arch" >&2) || return 1
      sha256sum --check --status <<<"$sum" || die "$debs/$file from ${uri//\'/} has not the checksum of apt's lists; remove it"
    fi
  done <<<"$listed"
  awk -v folder="$debs/" '{ print folder $2 }' <<<"$listed"
}

# install_libraries UNPACKED ROOT TRIPLET
install_libraries() {
  local from to="$2/usr/lib/$3" name
  mkdir -p "$to"
  for name in "${libraries[@]}"; do
    from="$(find "$1/lib/$3" "$1/usr/lib/$3" -name "$name" -print -quit 2>/dev/null)"
    [ -n "$from" ] || die "no $name in the packages"
    install -m 644 "$(readlink -f "$from")" "$to/$name"
  done
}

# install_loader UNPACKED ROOT TRIPLET: the loader, and the link under the name that programs ask for.
install_loader() {
  local loader dir
  loader="$(basename "$(find "$1/lib/$3" -name 'ld-linux-*.so.*' -print -quit)")"
  install -m 755 "$1/lib/$3/$loader" "$2/usr/lib/$3/$loader"
  mkdir -p "$2/usr/lib64"
  for dir in lib lib64; do
    [ -L "$1/$dir/$loader" ] && ln -sf "../lib/$3/$loader" "$2/usr/$dir/$loader"
  done
  [ -e "$2/lib64/$loader" ] || [ -e "$2/lib/$loader" ] || die "no link to the loader $loader in libc6"
}

install_etc() {
  mkdir -p "$1/etc" "$1/root" "$1/run" "$1/var" "$1/usr/bin" "$1/usr/sbin" "$1/usr/lib"
  install -d -m 1777 "$1/tmp"
  ln -s usr/bin "$1/bin"
  ln -s usr/sbin "$1/sbin"
  ln -s usr/lib "$1/lib"
  ln -s usr/lib64 "$1/lib64"
  ln -s ../run "$1/var/run"
  printf 'root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n' >"$1/etc/passwd"
  printf 'root:x:0:\nnogroup:x:65534:\n' >"$1/etc/group"
  printf 'passwd: files\ngroup: files\nhosts: files dns\n' >"$1/etc/nsswitch.conf"
}

main() {
  local root="$1" arch="${2:-$(dpkg --print-architecture)}" triplet work packages debs_of package deb
  case "$arch" in
    amd64) triplet=x86_64-linux-gnu ;;
    arm64) triplet=aarch64-linux-gnu ;;
    *) die "no image for the architecture $arch: amd64 and arm64 are known" ;;
  esac
  [ ! -e "$root" ] || die "$root exists already: name a new folder"
  mkdir -p "$root" "$debs"
  work="$(mktemp -d)"
  # shellcheck disable=SC2064 # the folder of now
  trap "rm -rf '$work'" EXIT
  install_etc "$root"
  mapfile -t packages < <(grep -v '^#' "$here/base-packages.txt")
  debs_of="$(fetch "${packages[@]/%/:$arch}")"
  while read -r deb; do
    dpkg-deb -x "$deb" "$work"
    package="$(dpkg-deb -f "$deb" Package)"
    printf '%s=%s\n' "$package" "$(dpkg-deb -f "$deb" Version)"
    if [ -f "$work/usr/share/doc/$package/copyright" ] && [ ! -L "$work/usr/share/doc/$package" ]; then
      install -D -m 644 "$work/usr/share/doc/$package/copyright" "$root/usr/share/doc/$package/copyright"
    fi
  done <<<"$debs_of"
  install_libraries "$work" "$root" "$triplet"
  install_loader "$work" "$root" "$triplet"
}

case $# in 1 | 2) ;; *) die "usage: rootfs.sh DIR [ARCH]" ;; esac
main "$@"
