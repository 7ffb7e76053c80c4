"""Reads every #include line under src/ and test/ and fails on a forbidden direction.

The table is docs/architecture.md's code map: which folder of src/ may include which.
"""

import pathlib
import re
import sys

MAY_USE = {
    "base": {"base"},
    "k8s": {"base", "k8s"},
    "cdi": {"base", "cdi"},
    "imex": {"base", "imex"},
    "dra": {"base", "k8s", "dra"},
    "roles": {"base", "k8s", "cdi", "imex", "dra"},  # and its own folder, see below
    "pch": {"base"},
    "sandbox": {"base", "k8s", "imex", "cdi", "dra", "sandbox"},
}
# Third parties live in cells: include prefix -> files (or folders) that may name it.
CELLS = {
    "boost/beast": ["src/k8s/", "src/sandbox/", "test/"],
    "boost/asio/ssl": ["src/k8s/http_transport", "src/k8s/beast_impl", "src/base/asio_impl",
                       "src/sandbox/api_front", "test/"],
    "openssl/": ["src/k8s/", "src/sandbox/", "test/"],
    "grpcpp/": ["src/dra/", "src/sandbox/", "test/"],
    "yaml-cpp/": ["src/k8s/config.cpp", "src/k8s/kubeconfig.cpp", "src/cdi/", "src/sandbox/", "test/"],
    "boost/json": ["src/base/json.hpp", "src/base/json.cpp", "src/base/json_text.cpp"],
    "boost/program_options": ["src/base/args.cpp"],
}
# Headers stay cheap: these may be named in .cpp files only.
NOT_IN_HEADERS = ("boost/beast", "grpcpp/", "yaml-cpp/", "openssl/", "boost/asio/ssl")

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')


def complaints(root: pathlib.Path):
    for path in sorted([*root.glob("src/**/*.[ch]pp"), *root.glob("test/**/*.[ch]pp")]):
        name = path.relative_to(root).as_posix()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = INCLUDE.match(line)
            if found:
                for text in check(name, found.group(1), found.group(2)):
                    yield f"{name}:{number}: {text}"


def check(name: str, quote: str, target: str):
    if ".." in target.split("/"):
        yield f'"{target}" uses ".."; write the path from src/'
    in_src = name.startswith("src/")
    folder = name.split("/")[1]
    if quote == '"' and in_src and "/" in target and name.count("/") >= 2:
        used = target.split("/")[0]
        allowed = MAY_USE.get(folder)
        if allowed is None:
            yield f"src/{folder} is not in the table of test/layering"
        elif folder == "roles":
            own = "/".join(name.split("/")[1:3])
            ours = used in allowed or target.startswith(own + "/") or target.startswith("roles/common")
            if not ours:
                yield f'{own} may not include "{target}"'
        elif used not in allowed and not target.endswith((".pb.h",)):
            yield f'src/{folder} may not include "{target}"'
    for prefix, homes in CELLS.items():
        if target.startswith(prefix) and not any(name.startswith(home) for home in homes):
            yield f"<{target}> may be included by {', '.join(homes)} only"
    if in_src and name.endswith(".hpp") and target.startswith(NOT_IN_HEADERS):
        yield f"<{target}> does not belong in a header"


def self_test():
    """The checker must be able to fail: each of these lines is a known offence."""
    offences = [
        ("src/base/x.hpp", '"', "k8s/client.hpp"),
        ("src/cdi/x.cpp", '"', "imex/channel.hpp"),
        ("src/roles/daemon/x.cpp", '"', "roles/controller/run.hpp"),
        ("src/roles/daemon/x.cpp", "<", "grpcpp/grpcpp.h"),
        ("src/k8s/x.hpp", "<", "boost/beast/http.hpp"),
        ("src/imex/x.cpp", '"', "../base/fd.hpp"),
    ]
    return [offence for offence in offences if not list(check(*offence))]


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    missed = self_test()
    if missed:
        print("the checker itself misses:", *missed, sep="\n  ")
        return 1
    found = list(complaints(root))
    print(*found, sep="\n")
    if found:
        print(f"{len(found)} forbidden includes; the rules are in docs/architecture.md")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
