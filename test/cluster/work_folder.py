"""The folder in which one cluster or API server keeps its data and logs.

Contract: `prepare()` makes it, and empties it if an earlier cluster was there. A folder with other
things in it is refused, never emptied.
"""

import shutil
from pathlib import Path

MARK = ".nvdra-cluster"


class WorkFolderError(Exception):
    """The folder belongs to somebody else."""


def prepare(folder):
    """Returns the empty folder, marked as ours."""
    folder = Path(folder)
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).exists():
            raise WorkFolderError(f"{folder} is not empty and was not made by this program: name another folder")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()
    return folder
