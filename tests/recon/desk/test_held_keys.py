"""Which keys of the desk a process has, by its variables."""

import os
import stat

import pytest

from recon.desk.endorsement import key_id
from recon.desk.held_keys import (
    NO_KEYS,
    PRIVATE,
    PUBLIC,
    SANDBOX_KEYS,
    held_keys,
    make_keys,
    private_key,
    public_key,
)
from recon.model.errors import ConfigurationError


def made(folder, name="desk"):
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    make_keys(private, public=public)
    return {PRIVATE: str(private), PUBLIC: str(public)}


def test_only_the_sandbox_has_keys_by_itself():
    """A demo needs no set-up; towards money that is real nothing counts without one."""
    assert held_keys({}, is_sandbox=True) is SANDBOX_KEYS
    assert held_keys({}, is_sandbox=False) is NO_KEYS


@pytest.mark.parametrize("is_sandbox", [True, False])
def test_a_night_has_the_public_key_alone(tmp_path, *, is_sandbox):
    """Named keys count at the sandbox, too; what must be proven depends on the gateway."""
    named = made(tmp_path)
    night = held_keys({PUBLIC: named[PUBLIC]}, is_sandbox=is_sandbox)
    desk = held_keys(named, is_sandbox=is_sandbox)

    assert (night.private, desk.private is not None) == (None, True)
    assert night.name == desk.name
    assert night.must_be_proven is not is_sandbox


def test_two_keys_that_are_no_pair_are_refused(tmp_path):
    """The desk would sign what no night believes."""
    one, other = made(tmp_path), made(tmp_path, "other")
    with pytest.raises(ConfigurationError, match="no pair"):
        held_keys({PRIVATE: one[PRIVATE], PUBLIC: other[PUBLIC]}, is_sandbox=False)


def test_no_key_shows_in_a_repr(tmp_path):
    """Settings are printed when something fails."""
    assert repr(held_keys(made(tmp_path), is_sandbox=False)) == "HeldKeys(both keys)"
    assert repr(NO_KEYS) == "HeldKeys(no key)"


def pair(folder):
    private, public = folder / "desk.key", folder / "desk.pub"
    make_keys(private, public=public)
    return private, public


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_only_its_owner_reads_the_private_key(tmp_path, umask):
    """Under any umask."""
    before = os.umask(umask)
    try:
        private, public = pair(tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert stat.S_IMODE(public.stat().st_mode) == 0o644


def test_the_pair_is_one(tmp_path):
    private, public = pair(tmp_path)
    assert key_id(private_key(private).public_key()) == key_id(public_key(public))


def test_a_key_is_made_once(tmp_path):
    """A second `init` would make every earlier word worthless."""
    private, public = pair(tmp_path)
    with pytest.raises(ConfigurationError, match="is there already"):
        make_keys(private, public=public)


def test_a_private_key_that_others_can_read_is_refused(tmp_path):
    """It would be everybody's desk."""
    private, _ = pair(tmp_path)
    private.chmod(0o640)
    with pytest.raises(ConfigurationError, match="others can read it"):
        private_key(private)


def test_what_is_no_key_is_refused(tmp_path):
    """By the name of its file; the halves are not mixed up either."""
    private, public = pair(tmp_path)
    public.chmod(0o600)
    with pytest.raises(ConfigurationError, match="not the desk's private key"):
        private_key(public)
    with pytest.raises(ConfigurationError, match="not the desk's public key"):
        public_key(private)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        public_key(tmp_path / "none")
