"""Which keys of the desk a process has, by its variables."""

from pathlib import Path

import pytest

from recon.desk.held_keys import NO_KEYS, PRIVATE, PUBLIC, SANDBOX_KEYS, held_keys, make_keys
from recon.model.errors import ConfigurationError


def made(folder: Path, name: str = "desk") -> dict[str, str]:
    """A pair of keys by its variables."""
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    make_keys(private, public=public)
    return {PRIVATE: str(private), PUBLIC: str(public)}


def test_only_the_sandbox_has_keys_by_itself() -> None:
    """A demo needs no set-up; towards money that is real nothing counts without one."""
    assert held_keys({}, is_sandbox=True) is SANDBOX_KEYS
    assert held_keys({}, is_sandbox=False) is NO_KEYS


@pytest.mark.parametrize("is_sandbox", [True, False])
def test_a_night_has_the_public_key_alone(tmp_path: Path, *, is_sandbox: bool) -> None:
    """Named keys count at the sandbox, too; what must be proven depends on the gateway."""
    named = made(tmp_path)
    night = held_keys({PUBLIC: named[PUBLIC]}, is_sandbox=is_sandbox)
    desk = held_keys(named, is_sandbox=is_sandbox)

    assert (night.private, desk.private is not None) == (None, True)
    assert night.name == desk.name
    assert night.must_be_proven is not is_sandbox


def test_two_keys_that_are_no_pair_are_refused(tmp_path: Path) -> None:
    """The desk would sign what no night believes."""
    one, other = made(tmp_path), made(tmp_path, "other")
    with pytest.raises(ConfigurationError, match="no pair"):
        held_keys({PRIVATE: one[PRIVATE], PUBLIC: other[PUBLIC]}, is_sandbox=False)


def test_no_key_shows_in_a_repr(tmp_path: Path) -> None:
    """Settings are printed when something fails."""
    assert repr(held_keys(made(tmp_path), is_sandbox=False)) == "HeldKeys(both keys)"
    assert repr(NO_KEYS) == "HeldKeys(no key)"
