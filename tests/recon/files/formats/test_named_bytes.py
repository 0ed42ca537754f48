import hashlib
import os
import socket
from pathlib import Path

import pytest

from recon.files.formats import named_bytes
from recon.files.formats.named_bytes import read_bytes
from recon.model.errors import SourceMissingError, SourceUnreadableError


def test_the_content_comes_with_its_hash(tmp_path: Path) -> None:
    """The hash is that of the very bytes that are read."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"abc")
    file = read_bytes(path)
    assert (file.content, file.sha256) == (b"abc", hashlib.sha256(b"abc").hexdigest())


def test_an_absent_file_is_the_callers_mistake(tmp_path: Path) -> None:
    """A file that does not exist ends with the exit code of wrong usage."""
    with pytest.raises(SourceMissingError, match=r"none\.csv does not exist") as told:
        read_bytes(tmp_path / "none.csv")
    assert told.value.exit_code == 2


def test_a_name_that_no_file_can_have_is_missing() -> None:
    """A NUL in a name is told as such, not as a crash."""
    with pytest.raises(SourceMissingError, match="not a file name"):
        read_bytes(Path("a\0b.csv"))


def test_a_name_longer_than_the_file_system_allows_is_refused(tmp_path: Path) -> None:
    """A name that cannot exist is refused with what the system says of it."""
    with pytest.raises(SourceUnreadableError, match="cannot be opened"):
        read_bytes(tmp_path / ("x" * 300))


@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "socket", "device"])
def test_only_regular_files_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A folder, pipe, link, socket or device is refused at once and never waited for."""
    path = tmp_path / "orders.csv"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        target = tmp_path / "target.csv"
        target.write_text("a,b\n")
        path.symlink_to(target)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            monkeypatch.chdir(tmp_path)  # a socket's address is short
            server.bind("orders.csv")
    else:
        path = Path("/dev/null")
    with pytest.raises(SourceUnreadableError, match=r"regular file|symbolic link|cannot be opened"):
        read_bytes(path)


def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    """What may not be read is told with the system's reason."""
    path = tmp_path / "orders.csv"
    path.write_text("a")
    path.chmod(0)
    if os.access(path, os.R_OK):  # the super-user reads everything
        assert read_bytes(path).content == b"a"
        return
    with pytest.raises(SourceUnreadableError, match="cannot be opened"):
        read_bytes(path)


def test_a_file_above_the_bound_is_not_read(tmp_path: Path) -> None:
    """The size is bounded before a byte is read."""
    path = tmp_path / "orders.csv"
    path.write_bytes(b"x" * 11)
    with pytest.raises(SourceUnreadableError, match="has 11 bytes; at most 10"):
        read_bytes(path, bytes_max=10)


@pytest.mark.parametrize("change", ["grows", "is replaced", "is removed"])
def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """An upload that is still running, or a file put in another's place, is never taken."""
    path = tmp_path / "orders.csv"
    path.write_text("first")
    read = named_bytes._read

    def read_then_change(descriptor: int, *, bytes_max: int) -> bytes:
        content = read(descriptor, bytes_max=bytes_max)
        if change == "grows":
            path.write_text("first and more")
        elif change == "is replaced":
            other = tmp_path / "other"
            other.write_text("secnd")
            other.replace(path)
        else:
            path.unlink()
        return content

    monkeypatch.setattr(named_bytes, "_read", read_then_change)
    with pytest.raises(SourceUnreadableError, match="while it was read"):
        read_bytes(path)
