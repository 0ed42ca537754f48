"""The desk's keys on the disk."""

import os
import stat
from pathlib import Path

import pytest

from recon.desk.endorsement import key_id
from recon.desk.held_keys import make_keys, private_key, public_key
from recon.model.errors import ConfigurationError


def made(folder: Path) -> tuple[Path, Path]:
    """A pair of keys."""
    private, public = folder / "desk.key", folder / "desk.pub"
    make_keys(private, public=public)
    return private, public


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_only_its_owner_reads_the_private_key(tmp_path: Path, umask: int) -> None:
    """Under any umask."""
    before = os.umask(umask)
    try:
        private, public = made(tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert stat.S_IMODE(public.stat().st_mode) == 0o644


def test_the_pair_is_one(tmp_path: Path) -> None:
    """What one signs the other verifies."""
    private, public = made(tmp_path)
    assert key_id(private_key(private).public_key()) == key_id(public_key(public))


def test_a_key_is_made_once(tmp_path: Path) -> None:
    """A second `init` would make every earlier word worthless."""
    private, public = made(tmp_path)
    with pytest.raises(ConfigurationError, match="is there already"):
        make_keys(private, public=public)


def test_a_private_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """It would be everybody's desk."""
    private, _ = made(tmp_path)
    private.chmod(0o640)
    with pytest.raises(ConfigurationError, match="others can read it"):
        private_key(private)


def test_what_is_no_key_is_refused(tmp_path: Path) -> None:
    """By the name of its file; the halves are not mixed up either."""
    private, public = made(tmp_path)
    public.chmod(0o600)
    with pytest.raises(ConfigurationError, match="not the desk's private key"):
        private_key(public)
    with pytest.raises(ConfigurationError, match="not the desk's public key"):
        public_key(private)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        public_key(tmp_path / "none")
