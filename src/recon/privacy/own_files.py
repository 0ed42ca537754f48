"""Creation of our files and folders with fixed permissions, whatever the process's umask."""

import errno
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

STORED_VARIABLES = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "TZ")
STORED_PREFIXES = ("PYTHON", "LC_")

WITHOUT_PLUGINS = {"PYDANTIC_DISABLE_PLUGINS": "__all__"}
"""pydantic asks each installed package whether it wants to observe all validation, including
settings and rows, which takes a tenth of a second. To be set before it is imported."""


def program_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that an interpreter needs; any other could be a key or a password."""
    return {
        name: value
        for name, value in environment.items()
        if name in STORED_VARIABLES or name.startswith(STORED_PREFIXES)
    }


OWNER = 0o600
"""Files with secrets or merchant data: readable by the owner only."""
GROUP = 0o640
"""Results: writable by the owner, readable by the finance group."""
EVERYBODY = 0o644
"""Files that everybody checks against and only the owner may change."""
FOLDER = 0o750
STRANGERS = 0o027
"""Umask: no write access for the group, no access for others."""


def refuse_other_users() -> None:
    """Set a umask that keeps other users out of all files this process will create.

    For our programs, so that it also covers the files of libraries: databases, logs, caches.
    """
    os.umask(os.umask(STRANGERS) | STRANGERS)


def make_folder(path: Path, *, mode: int = FOLDER) -> None:
    """Create a folder and its missing parents; existing ones are left unchanged.

    Args:
        path: The folder.
        mode: Its own permissions; its parents get FOLDER.

    Raises:
        OSError: one cannot be created, or a file is in the way.
    """
    missing = [each for each in path.parents if not each.exists()]
    for above in reversed(missing):
        above.mkdir(mode=FOLDER, exist_ok=True)
    path.mkdir(mode=mode, exist_ok=True)


@contextmanager
def folder_for_now(prefix: str) -> Iterator[Path]:
    """Create a temporary folder of this process, which exists until the end of the block.

    A killed process leaves its folder and content behind: the next call with the same prefix
    removes those of this user that no living process has locked.

    Raises:
        OSError: it cannot be created.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError), _opened(left) as number:
            if os.fstat(number).st_uid == os.geteuid():
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)
    with ExitStack() as last:
        while True:
            made = tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
            folder = Path(last.enter_context(made))
            # On a file system without locks the clean-up cannot lock it either.
            with suppress(OSError):
                fcntl.flock(last.enter_context(_opened(folder)), fcntl.LOCK_EX)
            if folder.exists():  # otherwise it was removed before it was locked
                break
        yield folder


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    number = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield number
    finally:
        os.close(number)


def for_group(path: str, flags: int) -> int:
    """Open a result file; to be passed to `open` as `opener`."""
    return os.open(path, flags, GROUP)


def for_owner(path: str, flags: int) -> int:
    """Open a file that only its owner may read."""
    return os.open(path, flags, OWNER)


def replace_result(
    path: Path, content: str | bytes, *, mode: int = GROUP, is_flushed: bool = False
) -> None:
    """Replace a file atomically, with this mode under any umask.

    It is written under an unpredictable name first, so that others with access to the folder cannot
    redirect it by a link. `is_flushed`: it gets its name only once its content is on the disk.

    Raises:
        OSError: the folder cannot be written.
    """
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-", suffix=".part")
    draft = Path(name)
    try:
        with os.fdopen(number, "wb") as file:
            os.fchmod(number, mode)
            file.write(content.encode() if isinstance(content, str) else content)
            if is_flushed:
                file.flush()
                os.fsync(number)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def open_unlinked(path: Path, flags: int, *, mode: int = OWNER) -> int:
    """Open a regular file at exactly this path; links, pipes and devices are refused.

    Raises:
        OSError: it is something else, or cannot be opened.
    """
    # Without O_NONBLOCK, opening a pipe would wait for a writer.
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file")
    return descriptor


def others_may_change(path: Path) -> bool:
    """Return whether anybody but this process's user and root may write or replace a file.

    Raises:
        OSError: its status cannot be read.
    """
    for looked_at in (path, path.parent):
        status = looked_at.stat()
        # In a sticky folder users cannot replace each other's files.
        open_to = 0 if status.st_mode & stat.S_ISVTX else stat.S_IWGRP | stat.S_IWOTH
        if status.st_uid not in {os.geteuid(), 0} or status.st_mode & open_to:
            return True
    return False


def advise_kernel(path: Path, text: str) -> None:
    """Write to an existing file of the kernel (`/proc/...`).

    Raises:
        OSError: it does not exist, or the kernel refuses the text.
    """
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
