import json

import pytest

from recon.archive.step_folder import FileEntry, Manifest, manifest_bytes, manifest_of
from recon.model.errors import ArchiveBrokenError
from tests.recon.archive.planted import about

ENTRY = FileEntry("orders.parquet", 2, 900, "1" * 64, "orders/1", "2" * 64)


def test_a_manifest_comes_back_as_it_was_written() -> None:
    """What the history binds can be read again."""
    manifest = Manifest(about(), (ENTRY,))

    assert manifest_of(manifest_bytes(manifest), name="m") == manifest


def test_a_format_from_the_future_is_refused_by_name() -> None:
    """A later version's manifest may mean what this one cannot know."""
    document = json.loads(manifest_bytes(Manifest(about(), (ENTRY,))))
    later = json.dumps(document | {"format": "recon night/2"}).encode()

    with pytest.raises(ArchiveBrokenError, match=r"recon night/2.*knows 'recon night/1'"):
        manifest_of(later, name="inputs/manifest.json")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"\xff\xfe",
        b'{"format": "recon night/1"}',
        b'{"format": "recon night/1", "files": [{"name": "a"}], "absent": []}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_manifest_is_refused_by_name(content: bytes) -> None:
    """An edited manifest ends in a sentence, not in a traceback."""
    with pytest.raises(ArchiveBrokenError, match=r"inputs/manifest\.json of the archive"):
        manifest_of(content, name="inputs/manifest.json")


def test_the_same_content_after_another_link_is_the_same() -> None:
    """A step that was written twice says the same, whatever the history did in between."""
    once = Manifest(about(), (ENTRY,))
    again = Manifest(about(history_before=f"9:{'b' * 64}"), (ENTRY,))
    other = Manifest(about(rules_digest="6" * 64), (ENTRY,))

    assert once.same_content(again)
    assert not once.same_content(other)
