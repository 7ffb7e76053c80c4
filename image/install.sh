#!/usr/bin/env bash
# install.sh DIR NVDRA: puts the program, its other names and the licence into the root folder DIR.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
[ $# -eq 2 ] || { echo "image: usage: install.sh DIR NVDRA" >&2; exit 1; }

install -D -m 755 "$2" "$1/usr/bin/nvdra"
# The names under which charts and pod templates of the original driver start the roles.
for name in compute-domain-controller compute-domain-kubelet-plugin compute-domain-daemon webhook; do
  ln -sf nvdra "$1/usr/bin/$name"
done
install -m 644 "$here/../LICENSE" "$1/LICENSE"
