"""The bounds of a file follow from its size."""

from pathlib import Path

from recon.files.reader.door import MIB, SMALL_BYTES, bounds_of, size_of


def test_small_files_have_one_bound() -> None:
    """Below 10 MB: what is its own, which with the libraries' code is 512 MiB, and 20 s."""
    assert bounds_of(0) == bounds_of(SMALL_BYTES)
    assert (bounds_of(0).data_bytes, bounds_of(0).seconds) == (432 * MIB, 20)


def test_larger_files_get_more_and_never_without_an_end() -> None:
    """Memory and time grow with the file; memory ends at 16 GiB."""
    sizes = [bounds_of(SMALL_BYTES + more * MIB) for more in (0, 1, 100, 1_000)]
    assert [one.data_bytes // MIB for one in sizes] == [432, 472, 4_432, 16_384]
    assert [one.seconds for one in sizes] == [20, 23, 320, 3_020]
    assert all(one.wall_seconds == 10 * one.seconds for one in sizes)


def test_what_is_no_file_has_no_size(tmp_path: Path) -> None:
    """Its reader says what is the matter with it."""
    (tmp_path / "o.csv").write_bytes(b"12345")
    assert size_of(tmp_path / "o.csv") == 5
    assert size_of(tmp_path / "gone.csv") == 0
    assert size_of(Path("\0")) == 0
