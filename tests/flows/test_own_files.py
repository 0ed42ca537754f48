"""That a whole night of the command line leaves nothing open to strangers, whatever the umask."""

import os
import subprocess
import sys

import pytest

from flows.serve import PASSWORD_FILE, SERVER_LOG
from recon.privacy.own_files import STRANGERS

pytestmark = pytest.mark.flow

TIMEOUT_SECONDS = 240
FILES_MIN = 20
OF_THE_SERVER = ("prefect.db", SERVER_LOG, PASSWORD_FILE)


def made(folder):
    """The folder and all that is in it."""
    yield folder
    yield from folder.rglob("*")


def test_a_night_under_an_open_umask_leaves_nothing_to_strangers(tmp_path):
    folder, scratch = tmp_path / "demo", tmp_path / "scratch"
    scratch.mkdir(mode=0o700)
    command = [sys.executable, "-c", "import sys; from recon.cli import main; sys.exit(main())"]
    ended = subprocess.run(
        [*command, "demo", "--dir", str(folder), "--orders", "300"],
        env=os.environ | {"TMPDIR": str(scratch), "RECON_LOG_FILE": str(folder / "night.log")},
        umask=0,
        timeout=TIMEOUT_SECONDS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "The workbook is at" in ended.stderr, ended.stderr
    modes = {
        str(path.relative_to(tmp_path)): path.lstat().st_mode & 0o777
        for path in made(folder)
        if not path.is_symlink()
    }
    assert len(modes) > FILES_MIN
    assert {name: oct(mode) for name, mode in modes.items() if mode & STRANGERS} == {}


def test_a_prefect_server_leaves_nothing_to_strangers(server):
    """Its database, its log and its password, whatever the umask of whoever starts it.

    What flows of this process keep beside them is this process's own.
    """
    own = [path for path in server.home.iterdir() if path.name.startswith(OF_THE_SERVER)]
    modes = {path.name: path.lstat().st_mode & 0o777 for path in own}

    assert len(modes) >= len(OF_THE_SERVER)
    assert {name: oct(mode) for name, mode in modes.items() if mode & STRANGERS} == {}
