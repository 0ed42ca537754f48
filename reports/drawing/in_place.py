"""A finished file in its place: whole or not at all, and never over something else."""

import filecmp
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from recon.model.durable import flush_folder
from recon.model.errors import OutputError
from recon.privacy.own_files import GROUP

VERSIONS_MAX = 99


def put_in_place(content: bytes, *, path: Path) -> Path:
    """As `written_in_place`, for a file that is in memory already."""

    def write(file: BinaryIO) -> None:
        file.write(content)

    return written_in_place(write, path=path)


def written_in_place(write: Callable[[BinaryIO], None], *, path: Path) -> Path:
    """Write a file under the wanted name, or -v2, -v3 ... when that is open or holds other content.

    It is written under another name first, flushed to the disk, then renamed. An equal file that is
    already there stays as it is.

    Raises:
        OutputError: too many versions stand there already.
        OSError: the folder cannot be written.
    """
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=".part")
    staged = Path(name)
    try:
        with os.fdopen(number, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        staged.chmod(GROUP)
        target = _free_name(path, like=staged)
        if target.exists():
            staged.unlink()
        else:
            staged.replace(target)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
    flush_folder(target.parent)
    return target


def _free_name(path: Path, *, like: Path) -> Path:
    """The first version that nobody has open and that is free, or holds the same already."""
    for version in range(1, VERSIONS_MAX + 1):
        target = path if version == 1 else _versioned(path, version=version)
        if _is_open(target):
            continue
        if not target.exists() or filecmp.cmp(target, like, shallow=False):
            return target
    msg = (
        f"{path.name} and {VERSIONS_MAX - 1} later versions stand in {path.parent} already; the "
        "result is kept in the database: move old workbooks away, then write the report again"
    )
    raise OutputError(msg)


def _versioned(path: Path, *, version: int) -> Path:
    """The version stands before the ending; a compressed file has two."""
    ending = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    return path.with_name(f"{path.name.removesuffix(ending)}-v{version}{ending}")


def _is_open(path: Path) -> bool:
    """Whether Excel (~$name) or LibreOffice (.~lock.name#) has the file open."""
    locks = (path.with_name(f"~${path.name}"), path.with_name(f".~lock.{path.name}#"))
    return any(lock.exists() for lock in locks)
