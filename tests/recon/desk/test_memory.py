"""The desk's own memory of its newest words."""

import multiprocessing
import os
import stat

import pytest

from recon.desk.held_keys import LastSignature, Memory
from recon.model.errors import ConfigurationError


def test_the_newest_word_of_each_database_is_kept(tmp_path):
    """A later process finds it; an older word never takes its place."""
    path = tmp_path / "desk.key.spoken"
    memory = Memory(path)
    assert memory.newest("a") is None
    memory.save("a", LastSignature(2, "22"))
    memory.save("b", LastSignature(1, "11"))
    memory.save("a", LastSignature(1, "11"))

    assert Memory(path).newest("a") == LastSignature(2, "22")
    assert Memory(path).newest("b") == LastSignature(1, "11")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    memory.forget("a")
    assert (memory.newest("a"), memory.newest("b")) == (None, LastSignature(1, "11"))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 1}', '{"a": {"sequence": "x"}}'])
def test_a_file_that_was_changed_is_no_empty_memory(tmp_path, text):
    """Whoever spoils it makes the desk stop, not forget."""
    path = tmp_path / "desk.key.spoken"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="is not the desk's memory"):
        Memory(path).newest("a")


def test_a_folder_that_takes_nothing_is_told(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be written"):
        Memory(tmp_path / "gone" / "desk.key.spoken").save("a", LastSignature(1, "11"))


def test_everybody_reads_the_published_copy(tmp_path):
    """Under any umask; and what is forgotten is forgotten there, too."""
    own, published = tmp_path / "desk.key.spoken", tmp_path / "desk.pub.spoken"
    memory = Memory(own, published=published)
    before = os.umask(0o077)
    try:
        memory.save("a", LastSignature(1, "aa"))
    finally:
        os.umask(before)
    assert [stat.S_IMODE(one.stat().st_mode) for one in (own, published)] == [0o600, 0o644]
    assert Memory(published).newest("a") == LastSignature(1, "aa")
    memory.forget("a")
    assert Memory(published).newest("a") is None


def test_of_two_desks_the_newer_word_stays(tmp_path):
    """Two processes with one key remember at the same time; no word is remembered away."""
    path = tmp_path / "desk.key.spoken"

    def remember(turn):
        for number in range(1, 26):
            Memory(path).save(f"database {turn}", LastSignature(number, "aa"))
            Memory(path).save("both", LastSignature(2 * number + turn, "aa"))

    workers = [multiprocessing.Process(target=remember, args=(turn,)) for turn in (0, 1)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    found = [Memory(path).newest(name) for name in ("database 0", "database 1", "both")]
    assert found == [LastSignature(25, "aa"), LastSignature(25, "aa"), LastSignature(51, "aa")]
