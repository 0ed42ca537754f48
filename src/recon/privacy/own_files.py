"""How files and folders of ours are made: closed to strangers under any umask of the process."""

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
"""pydantic asks each installed package whether it wants to see all that is checked, settings and
rows among it, and takes a tenth of a second for the question. To be said before it is loaded."""


def program_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """What an interpreter needs; whatever else stands there could be a key or a password."""
    return {
        name: value
        for name, value in environment.items()
        if name in STORED_VARIABLES or name.startswith(STORED_PREFIXES)
    }


OWNER = 0o600
"""Of what holds secrets or what the merchant wrote: its owner only."""
GROUP = 0o640
"""Of results: the owner writes, the group of finance may read."""
EVERYBODY = 0o644
"""Of what everybody checks by and its owner alone may change."""
FOLDER = 0o750
STRANGERS = 0o027
"""What the group may not change, and nobody else do at all."""


def refuse_other_users() -> None:
    """Take from every file that this process will make what strangers could do with it.

    For programs of ours, and so for whatever their libraries write: databases, logs, caches.
    """
    os.umask(os.umask(STRANGERS) | STRANGERS)


def make_folder(path: Path, *, mode: int = FOLDER) -> None:
    """Make a folder and those above it that are not there; those that are stay as they are.

    Args:
        path: The folder.
        mode: Its own; those above it get that of folders.

    Raises:
        OSError: one cannot be made, or a file stands there.
    """
    missing = [each for each in path.parents if not each.exists()]
    for above in reversed(missing):
        above.mkdir(mode=FOLDER, exist_ok=True)
    path.mkdir(mode=mode, exist_ok=True)


@contextmanager
def folder_for_now(prefix: str) -> Iterator[Path]:
    """A folder of this process for the block, where temporary files lie.

    A process that is killed leaves its own, with whatever stood in it: the next call with the same
    prefix removes those of this user that no living process holds.

    Raises:
        OSError: none can be made.
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
            # Where there are no locks whoever sweeps gets none either.
            with suppress(OSError):
                fcntl.flock(last.enter_context(_opened(folder)), fcntl.LOCK_EX)
            if folder.exists():  # else it was swept before it was locked
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
    """Opener of a result: what `open` takes as `opener`."""
    return os.open(path, flags, GROUP)


def for_owner(path: str, flags: int) -> int:
    """Opener of what only its owner may read."""
    return os.open(path, flags, OWNER)


def for_everybody(path: str, flags: int) -> int:
    """Opener of what everybody may read, under any umask, and only its owner write."""
    descriptor = os.open(path, flags, EVERYBODY)
    os.fchmod(descriptor, EVERYBODY)
    return descriptor


def replace_result(
    path: Path, content: str | bytes, *, mode: int = GROUP, is_flushed: bool = False
) -> None:
    """Put a text in the place of a file at once, with this mode under any umask.

    It is written under a name that nobody knows before: where others may write the folder, a link
    of theirs leads it nowhere. `is_flushed`: it has its name only when all of it is on the disk.

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
    """Open a regular file that lies at this very place; a link, pipe or device is none.

    Raises:
        OSError: it is something else, or cannot be opened.
    """
    # Without O_NONBLOCK, opening a pipe would wait for whoever never comes.
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file")
    return descriptor


def others_may_change(path: Path) -> bool:
    """Whether somebody beside this process's user and root may write a file, or replace it.

    Raises:
        OSError: it cannot be looked at.
    """
    for looked_at in (path, path.parent):
        status = looked_at.stat()
        # In a sticky folder nobody replaces the files of others.
        open_to = 0 if status.st_mode & stat.S_ISVTX else stat.S_IWGRP | stat.S_IWOTH
        if status.st_uid not in {os.geteuid(), 0} or status.st_mode & open_to:
            return True
    return False


def advise_kernel(path: Path, text: str) -> None:
    """Write to a file of the kernel (`/proc/...`), which is there already and none of ours.

    Raises:
        OSError: there is none, or it takes no such word.
    """
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
