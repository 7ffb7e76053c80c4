# Functions of ./dev. Sourced with the repository root as working directory.
# shellcheck shell=bash

cache="${XDG_CACHE_HOME:-$HOME/.cache}/nvdra"
export CCACHE_DIR="${CCACHE_DIR:-$cache/ccache}"
export CCACHE_NOHASHDIR=1
export CCACHE_BASEDIR="$PWD"
export CCACHE_MAXSIZE="${CCACHE_MAXSIZE:-4G}"
export CCACHE_SLOPPINESS=pch_defines,time_macros
build="${NVDRA_BUILD:-build}"
# A precompiled header names the files that it was made from. One of another checkout, taken from the cache, would
# define everything a second time.
export CCACHE_NAMESPACE="${CCACHE_NAMESPACE:-$PWD}"

say() { printf '==> %s\n' "$*" >&2; }
die() { printf 'dev: %s\n' "$*" >&2; exit 1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else die "this step needs root and there is no sudo: $*"
  fi
}

# need_packages FILE...: installs what is missing of the Debian packages listed in the files.
need_packages() {
  local missing=() package
  while read -r package; do
    case "$package" in '' | '#'*) continue ;; esac
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done < <(cat "$@")
  [ ${#missing[@]} -eq 0 ] && return
  say "installing ${#missing[@]} Debian packages: ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# configure DIR [MESON OPTIONS]: once; a configured folder is kept.
configure() {
  local dir="$1"
  shift
  need_packages toolchain/packages.txt
  [ -f "$dir/build.ninja" ] && return
  say "configuring $dir"
  local log
  log="$(mktemp)"
  if ! meson setup --native-file toolchain/clang19.ini "$dir" "$@" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    die "configuring $dir failed; the reason stands above"
  fi
  rm -f "$log"
}

compile() {
  configure "$build"
  say "building in $build"
  ninja -C "$build" "$@" >&2
}

# kubernetes VERSION: builds (once) what a real cluster needs; prints nothing on stdout.
kubernetes() {
  need_packages test/cluster/packages.txt
  python3 test/cluster/build.py --kubernetes "$1" >&2
}

cmd_configure() { configure "${1:-$build}" "${@:2}"; } # DIR [OPTIONS]: configure a build folder
cmd_build() { compile "$@"; }                          # [TARGET...]: build everything, or some targets

cmd_demo() { # [driver-managed|host-managed]: build, then the guide's walk in the sandbox
  compile src/nvdra src/sandbox/nvdra-sandbox
  "$build/src/sandbox/nvdra-sandbox" demo "$@"
}

cmd_test() { # [--suite unit|loopback|sandbox|privileged]: build and run the tests
  compile
  if [ -z "${KUBEBUILDER_ASSETS:-}" ] && ! command -v kubectl >/dev/null; then
    say "kubectl, for one of the tests"
    python3 test/cluster/build.py --only kubectl >/dev/null || say "no kubectl: that test will be skipped"
  fi
  say "running the tests"
  python3 toolchain/run_tests.py "$build" --out "$build/test-count.txt" "$@"
}

cmd_lint() { # format, include directions, scripts, chart, clang-tidy (cached by content)
  configure "$build"
  need_packages toolchain/lint-packages.txt
  local passed=0 failed=0
  check() {
    local name="$1"
    shift
    if "$@"; then passed=$((passed + 1)); echo "ok     lint: $name"; else
      failed=$((failed + 1))
      echo "FAILED lint: $name"
    fi
  }
  local sources scripts
  mapfile -t sources < <(git ls-files -- '*.cpp' '*.hpp')
  mapfile -t scripts < <(git ls-files -- dev .ci/run '*.sh')
  check "clang-format" clang-format-19 --dry-run -Werror "${sources[@]}"
  check "include directions" python3 test/layering/layering.py .
  check "shellcheck" shellcheck -x "${scripts[@]}"
  check "python" bash -c "git ls-files -- '*.py' | xargs pyflakes3"
  check "no path of a machine" bash -c "! git grep -nE '(^|[^A-Za-z0-9_.])/(root|work|home)/[a-z]' -- ':!test/cluster/modules'"
  # docker.io/library/ is what containerd puts before the name of an image without a registry.
  check "no registry host" bash -c \
    "! git grep -nE '(docker|quay|ghcr|gcr|registry\.k8s)\.io/' -- ':!test/cluster/modules' | grep -v 'docker\.io/library/'"
  if need_helm; then
    check "helm lint" "$helm" lint --quiet charts/nvdra --namespace nvdra
    check "chart tests" python3 test/chart/run.py --helm "$helm"
  else
    check "helm" false
  fi
  # clang-tidy reads the precompiled and the generated headers.
  local headers
  mapfile -t headers < <(ninja -C "$build" -t targets all | sed -nE 's/^(.*\.(pch|pb\.h)): .*/\1/p' | grep -v '^test/')
  say "precompiling headers"
  ninja -C "$build" "${headers[@]}" >&2
  check "clang-tidy" python3 toolchain/tidy.py "$build" "$cache/tidy"
  echo "$passed passed, $failed failed, 0 skipped" | tee "$build/lint-count.txt"
  [ "$failed" = 0 ]
}

need_helm() {
  need_packages test/cluster/packages.txt
  python3 test/cluster/build.py --only helm >&2 || return 1
  helm="$(find "$cache/helm" -maxdepth 2 -type f -name helm | sort | tail -n 1)"
  [ -n "$helm" ]
}

# The simulated tools of a sandbox run in folders of their own, which takes a static program; sanitizers
# need a dynamic one. So the suite `sandbox` is not among these.
cmd_asan() { # build with ASan and UBSan, run the tests
  build="${NVDRA_ASAN_BUILD:-build-asan}"
  configure "$build" -Dlink=dynamic -Db_sanitize=address,undefined
  compile
  say "running the tests under ASan and UBSan"
  ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1 \
    UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 NVDRA_TEST_TIMEOUT_FACTOR=6 \
    python3 toolchain/run_tests.py "$build" --suite unit --suite loopback "$@"
}

cmd_image() { # FILE.tar [--name REPO:TAG]: write the container image
  [ $# -ge 1 ] || die "usage: ./dev image FILE.tar [--name REPO:TAG]"
  local file="$1"
  shift
  need_packages image/packages.txt
  compile src/nvdra
  image/build.sh "$file" "$build/src/nvdra" "$@"
}

cmd_e2e() { # [--kubernetes VERSION] [-k PATTERN]: the guide on a real Kubernetes, with faults
  local version=1.34.4 arguments=()
  while [ $# -gt 0 ]; do
    case "$1" in
      --kubernetes) version="$2"; shift 2 ;;
      *) arguments+=("$1"); shift ;;
    esac
  done
  kubernetes "$version"
  need_packages image/packages.txt
  compile src/nvdra src/sandbox/nvdra-sandbox test/integration/client_integration_test
  local log status=0
  log="$(mktemp)"
  as_root env XDG_CACHE_HOME="${cache%/nvdra}" NVDRA_E2E_ATTEMPTS="${NVDRA_E2E_ATTEMPTS:-1}" \
    python3 test/e2e/run.py --kubernetes "$version" --build "$build" "${arguments[@]}" | tee "$log" || status=1
  if [ ${#arguments[@]} -eq 0 ]; then
    say "the client and the chart against a real API server"
    on_api_server "$version" python3 toolchain/run_tests.py "$build" --suite integration | tee -a "$log" || status=1
    need_helm
    on_api_server "$version" python3 test/chart/run.py --cluster --helm "$helm" | tee -a "$log" || status=1
  fi
  sum_counts "$log" || status=1
  rm -f "$log"
  return "$status"
}

# on_api_server VERSION COMMAND...: with KUBECONFIG of a fresh API server; at the end all of it is gone.
on_api_server() {
  local version="$1" folder status=0
  shift
  folder="$(mktemp -d)"
  python3 test/cluster/apiserver.py run --dir "$folder" --kubernetes "$version" --controllers -- "$@" || status=$?
  rm -rf "$folder"
  return "$status"
}

# sum_counts FILE: one line for all "N passed, N failed, N skipped" lines of the file.
sum_counts() {
  grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$1" |
    awk '{ p += $1; f += $3; s += $5 } END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 }'
}

cmd_bench() { # [NAME...]: the figures, each with its command
  compile
  as_root env XDG_CACHE_HOME="${cache%/nvdra}" python3 test/bench/run.py --build "$build" "$@"
}

cmd_fuzz() { # [TARGET] [SECONDS]: libFuzzer over the parsers
  build="${NVDRA_FUZZ_BUILD:-build-fuzz}"
  configure "$build" -Dlink=dynamic -Db_sanitize=address,undefined -Dfuzzers=true
  compile fuzz
  python3 test/fuzz/run.py "$build" "$@"
}

cmd_help() {
  echo "usage: ./dev COMMAND"
  sed -nE 's/^cmd_([a-z0-9]+)\(\) *\{.*# (.*)$/  \1|\2/p' toolchain/dev.sh | while IFS='|' read -r name text; do
    printf '  %-10s %s\n' "${name// /}" "$text"
  done
}

main() {
  local command="${1:-help}"
  shift || true
  declare -F "cmd_$command" >/dev/null || die "there is no command '$command'; ./dev help lists them"
  "cmd_$command" "$@"
}
