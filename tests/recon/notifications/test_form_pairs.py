import pytest

from recon.model.errors import SourceUnreadableError
from recon.notifications.receiver import FORM_BYTES_MAX, PAIRS_MAX, form_pairs


def test_a_form_gives_its_pairs_trimmed() -> None:
    """Plus and percent are undone, blanks at the ends go, an empty value stays."""
    assert form_pairs(b"a=1+2&b=%C3%A9+&c=") == {"a": "1 2", "b": "é", "c": ""}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no pair at all",
        b"a=1&a=2",
        b"a=%FF%FE",
        b"a=\xff",
        b"a=" + b"x" * FORM_BYTES_MAX,
        b"a=" + b"x" * 5_001,
        b"&".join(b"n%d=1" % number for number in range(PAIRS_MAX + 1)),
        b'{"a": "4111111111111111"}',
    ],
    ids=["empty", "text", "twice", "utf-8", "bytes", "big", "long", "many", "json"],
)
def test_anything_else_is_refused_without_its_words(body: bytes) -> None:
    """The reason never repeats what somebody sent."""
    with pytest.raises(SourceUnreadableError) as refused:
        form_pairs(body)

    assert "4111" not in str(refused.value)
    assert len(str(refused.value)) < 100
