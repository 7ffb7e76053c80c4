#!/usr/bin/env bash
# build.sh FILE.tar NVDRA [--name REPO:TAG]: writes a container image as a docker-archive.
#
# FILE.tar  can be loaded with `ctr images import`, `docker load`, `podman load`, `skopeo copy`.
# NVDRA     a static executable for amd64 or arm64; the image gets its architecture.
# --name    default: nvdra:<appVersion of the chart>, the name that the chart expects.
#
# Needs no root and no container tool. Two runs with the same NVDRA and the same Debian packages give
# the same bytes: owners, modes, order and times are fixed (SOURCE_DATE_EPOCH, default 0). The label
# nvdra.base-packages names the packages.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
usage='usage: build.sh FILE.tar NVDRA [--name REPO:TAG]'

die() { printf 'image: %s\n' "$*" >&2; exit 1; }

file='' program='' name=''
while [ $# -gt 0 ]; do
  case "$1" in
    --name) [ $# -ge 2 ] || die "$usage"; name="$2"; shift 2 ;;
    --name=*) name="${1#*=}"; shift ;;
    -*) die "unknown option $1; $usage" ;;
    *)
      if [ -z "$file" ]; then file="$1"; elif [ -z "$program" ]; then program="$1"; else die "$usage"; fi
      shift ;;
  esac
done
[ -n "$program" ] || die "$usage"
[ -f "$program" ] || die "no file $program: build nvdra first"

version="$(sed -n 's/^appVersion: *"\(.*\)"$/\1/p' "$here/../charts/nvdra/Chart.yaml")"
[ -n "$version" ] || die "no appVersion in charts/nvdra/Chart.yaml"
arch="$(python3 "$here/pack.py" arch "$program")"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
packages="$("$here/rootfs.sh" "$work/base" "$arch" | sort | paste -sd' ')"
"$here/install.sh" "$work/program" "$program"
python3 "$here/pack.py" archive "$file" --name "${name:-nvdra:$version}" --arch "$arch" --version "$version" \
  --packages "$packages" "$work/base" "$work/program"
