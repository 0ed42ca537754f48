import pytest

from recon.privacy.this_machine import is_loopback


@pytest.mark.parametrize(
    ("host", "is_here"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", False), ("", False)],
)
def test_only_a_literal_address_is_this_machine(host: str, *, is_here: bool) -> None:
    """A name could be answered by anybody."""
    assert is_loopback(host) is is_here
