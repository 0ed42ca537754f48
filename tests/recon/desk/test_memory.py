"""The desk's own memory of its newest words."""

import stat
from pathlib import Path

import pytest

from recon.desk.memory import Memory, Spoken
from recon.model.errors import ConfigurationError


def test_the_newest_word_of_each_database_is_kept(tmp_path: Path) -> None:
    """A later process finds it; an older word never takes its place."""
    path = tmp_path / "desk.key.spoken"
    memory = Memory(path)
    assert memory.newest("a") is None
    memory.keep("a", Spoken(2, "22"))
    memory.keep("b", Spoken(1, "11"))
    memory.keep("a", Spoken(1, "11"))

    assert Memory(path).newest("a") == Spoken(2, "22")
    assert Memory(path).newest("b") == Spoken(1, "11")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    memory.forget("a")
    assert (memory.newest("a"), memory.newest("b")) == (None, Spoken(1, "11"))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 1}', '{"a": {"sequence": "x"}}'])
def test_a_file_that_was_changed_is_no_empty_memory(tmp_path: Path, text: str) -> None:
    """Whoever spoils it makes the desk stop, not forget."""
    path = tmp_path / "desk.key.spoken"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="is not the desk's memory"):
        Memory(path).newest("a")


def test_a_folder_that_takes_nothing_is_told(tmp_path: Path) -> None:
    """With the file's name."""
    with pytest.raises(ConfigurationError, match="cannot be written"):
        Memory(tmp_path / "gone" / "desk.key.spoken").keep("a", Spoken(1, "11"))
