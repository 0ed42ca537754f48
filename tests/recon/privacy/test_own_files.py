import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from recon.privacy.own_files import (
    OWNER,
    folder_for_now,
    for_group,
    for_owner,
    make_folder,
    program_variables,
    refuse_other_users,
    replace_result,
)


def mode(path):
    return path.stat().st_mode & 0o777


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request):
    """A process that leaves so much open."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_files_and_folders_are_closed_to_strangers(umask, tmp_path):
    """0640 or 0600, 0750 or 0700: never more, and never so little that we could not go on."""
    deep = tmp_path / "a" / "b"
    make_folder(deep, mode=0o700)
    make_folder(tmp_path / "a")  # what is there stays
    for opener, name in ((for_group, "group"), (for_owner, "owner")):
        with open(deep / name, "x", opener=opener) as file:
            file.write("text")
    results = 0o600 if umask == 0o077 else 0o640
    assert (mode(deep), mode(deep.parent)) == (0o700, 0o700 if umask == 0o077 else 0o750)
    assert [mode(deep / name) for name in ("group", "owner")] == [results, 0o600]


def test_a_program_of_ours_closes_what_its_libraries_write(umask, tmp_path):
    refuse_other_users()
    (tmp_path / "theirs").write_text("text")
    (tmp_path / "folder").mkdir()
    assert mode(tmp_path / "theirs") == (0o600 if umask == 0o077 else 0o640)
    assert mode(tmp_path / "folder") == (0o700 if umask == 0o077 else 0o750)


HOLDS = """
import sys
from recon.privacy.own_files import folder_for_now
with folder_for_now("recon-sql-") as folder:
    (folder / "rows").write_text("4111")
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_a_killed_process_leaves_its_temporary_folder_to_the_next_one(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    other = tmp_path / "recon-sheets-x"
    other.mkdir()
    held = [
        subprocess.Popen(
            [sys.executable, "-c", HOLDS],
            env={**os.environ, "TMPDIR": str(tmp_path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    left, kept = [Path((each.stdout or sys.stdin).readline().strip()) for each in held]
    held[0].kill()
    held[0].communicate("")
    assert (left / "rows").is_file()

    with folder_for_now("recon-sql-") as mine, folder_for_now("recon-sql-") as again:
        assert {*tmp_path.iterdir()} == {other, kept, mine, again}
        assert (mode(mine), [*mine.iterdir()]) == (0o700, [])
    held[1].communicate("")
    assert [*tmp_path.iterdir()] == [other]


def test_a_result_takes_its_place_at_once(umask, tmp_path):
    victim, path = tmp_path / "victim", tmp_path / "result"
    victim.write_text("mine")
    path.symlink_to(victim)
    assert os.umask(umask) == umask
    replace_result(path, "ours")
    assert (path.read_text(), path.is_symlink(), mode(path)) == ("ours", False, 0o640)
    assert victim.read_text() == "mine"
    replace_result(path, "ours alone", mode=OWNER)
    assert (path.read_text(), mode(path)) == ("ours alone", 0o600)
    with pytest.raises(OSError, match="directory"):
        replace_result(tmp_path, "nothing")
    assert sorted(found.name for found in tmp_path.iterdir()) == ["result", "victim"]


def test_a_program_takes_over_what_python_needs_and_no_secret():
    """Keys have any name, so what goes along is named, not what stays behind."""
    needed = {"PATH": "/bin", "HOME": "/h", "PYTHONPATH": "/p", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    secrets = {"RECON_SIGN_KEY": "k", "KEY_OF_THE_SHOP": "k", "CODE_OF_ANN": "s", "AWS_KEY": "k"}
    assert program_variables({**needed, **secrets, "PREFECT_API_KEY": "k"}) == needed
