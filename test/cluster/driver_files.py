"""The files of a simulated NVIDIA driver, built as the real ones are: programs that need libraries.

Contract: `build(simulator, folder)` fills the folder with nvidia-smi, nvidia-imex and nvidia-imex-ctl,
the libraries they are linked against (which exist nowhere but in a driver root), and the C library and
loader, so that they start after chroot. `simulator` is the program nvdra-sandbox: it does the work, and
is itself called like a driver library, because only these reach the container of a daemon.
Needs a C compiler.
"""

import re
import shutil
import subprocess
from pathlib import Path

from process import ProcessError

VERSION = "580.95.05"
SOURCES = Path(__file__).resolve().parent / "driver"
SIMULATOR = f"libnvidia-sandbox.so.{VERSION}"
FAULTS = f"libnvidia-sandbox-faults.so.{VERSION}"
COMPILERS = ("clang-19", "gcc", "cc")
# A library's name, and the one it needs.
LIBRARIES = {"libcuda": None, "libnvidia-ml": None, "libnvidia-imex": "libcuda"}
PROGRAMS = {"nvidia-smi": "libnvidia-ml", "nvidia-imex": "libnvidia-imex", "nvidia-imex-ctl": "libnvidia-imex"}


class DriverFiles:
    """The built files. libraries: path by the name that a driver root has it under; links: name by name."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.programs = {name: self.folder / name for name in PROGRAMS}
        self.libraries = {file_of(name): self.folder / file_of(name) for name in LIBRARIES}
        self.libraries[SIMULATOR] = self.folder / SIMULATOR
        self.links = {soname_of(name): file_of(name) for name in LIBRARIES}
        self.loader = self.c_library = None


def file_of(name):
    """libcuda.so.580.95.05"""
    return f"{name}.so.{VERSION}"


def soname_of(name):
    """libcuda.so.1"""
    return f"{name}.so.1"


def build(simulator, folder):
    """Builds all files; the DriverFiles."""
    files = DriverFiles(folder)
    files.folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(simulator, files.libraries[SIMULATOR])
    files.libraries[SIMULATOR].chmod(0o755)
    compiler = next((c for c in COMPILERS if shutil.which(c)), None)
    if not compiler:
        raise ProcessError(f"none of the compilers {', '.join(COMPILERS)} is installed")
    for name, needed in LIBRARIES.items():
        _compile(compiler, "-shared", "-fPIC", f"-Wl,-soname,{soname_of(name)}", f'-DVERSION="{VERSION}"',
                 f"-DHERE={_symbol(name)}_here", f"-DRUN={_symbol(name)}_run",
                 *([f"-DNEEDS={_symbol(needed)}_here"] if needed else []), SOURCES / "library.c",
                 *([files.folder / file_of(needed)] if needed else []), "-o", files.folder / file_of(name))
    for name, needed in PROGRAMS.items():
        _compile(compiler, f"-DRUN={_symbol(needed)}_run", SOURCES / "tool.c", files.folder / file_of(needed),
                 "-Wl,--allow-shlib-undefined", "-o", files.programs[name])
    files.loader, files.c_library = _system_libraries(files.programs["nvidia-smi"])
    return files


def _symbol(library):
    return library.replace("-", "_")


def _compile(compiler, *arguments):
    done = subprocess.run([compiler, "-O1", "-Wall", "-Wextra", "-Werror", *map(str, arguments)], capture_output=True,
                          text=True)
    if done.returncode:
        raise ProcessError(f"{compiler} {' '.join(map(str, arguments))}: {done.stderr.strip()}")


def _system_libraries(program):
    """The loader and the C library that a program of this machine uses."""
    text = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    loader = re.search(r"^\s*(/\S*/ld-linux\S*)", text, re.M)
    library = re.search(r"libc\.so\.6 => (/\S+)", text)
    if not loader or not library:
        raise ProcessError(f"ldd {program} names no loader or C library: {text}")
    return Path(loader[1]), Path(library[1])
