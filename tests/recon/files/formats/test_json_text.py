from decimal import Decimal
from pathlib import Path

import pytest

from recon.files.formats.json_text import read_json_object
from recon.model.errors import SourceUnreadableError


def test_numbers_stay_exact(tmp_path: Path) -> None:
    """No number passes through a binary fraction."""
    path = tmp_path / "summary.json"
    path.write_text('{"a": 0.1, "b": 12345678901234567890}')
    assert read_json_object(path) == {"a": Decimal("0.1"), "b": 12345678901234567890}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"a": NaN}', "has NaN, which is no JSON number"),
        (b'{"a": 1, "a": 2}', "has a key twice"),
        (b"[1]", "is not a JSON object"),
        (b'{"a": "\xff"}', "is not JSON in UTF-8"),
        (b'{"a": ', "is not JSON in UTF-8"),
        (b"[" * 100_000, "is not JSON in UTF-8"),
        (b'{"a": ' + b"1" * 10_000 + b"}", "is not JSON in UTF-8"),
    ],
)
def test_what_is_not_one_strict_object_is_refused(
    tmp_path: Path, content: bytes, told: str
) -> None:
    """Constants, double keys, depth and other shapes end in a sentence, not in a crash."""
    path = tmp_path / "summary.json"
    path.write_bytes(content)
    with pytest.raises(SourceUnreadableError, match=told):
        read_json_object(path)
