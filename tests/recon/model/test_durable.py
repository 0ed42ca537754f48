import os
from pathlib import Path

import pytest

from recon.model.durable import flush_folder


def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    """Whoever believes a file safe must hear that its folder is not."""
    with pytest.raises(FileNotFoundError):
        flush_folder(tmp_path / "gone")


def test_the_folder_itself_is_flushed_and_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The descriptor of that very folder reaches the disk, and is closed after an error too."""
    flushed: list[tuple[int, str]] = []

    def failing(descriptor: int) -> None:
        flushed.append((descriptor, str(Path(f"/proc/self/fd/{descriptor}").readlink())))
        raise OSError(5, "the disk failed")

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OSError, match="the disk failed"):
        flush_folder(tmp_path)

    ((descriptor, name),) = flushed
    assert name == str(tmp_path)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
