import os

import paramiko
import pytest

from recon.config.file_layouts import FileLayout
from recon.config.file_sources import RemoteSource
from recon.files.inbox.arrived_files import LOOKS_MAX
from recon.files.inbox.fetching import Fetched, fetch
from recon.files.inbox.sftp_folder import sftp_folder
from recon.model.errors import ConfigurationError, SourceUnreadableError
from tests.recon.files.sftp_server import PASSWORD, USER, sftp_server


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """The folder of a server, and the server."""
    folder = tmp_path_factory.mktemp("theirs") / "out"
    folder.mkdir()
    with sftp_server(folder.parent) as served:
        yield folder, served


@pytest.fixture
def inbox(tmp_path, theirs):
    """An empty inbox; the server's folder is emptied too."""
    for entry in theirs[0].iterdir():
        entry.rmdir() if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    theirs[1].on_read.clear()
    folder = tmp_path / "inbox"
    folder.mkdir()
    return folder


def source(served, tmp_path, **changed):
    """The server as an operator declares it."""
    tables = {
        "url": f"sftp://{USER}@127.0.0.1:{served.port}/out",
        "files": ["*.csv"],
        "known_hosts_file": served.known_hosts(tmp_path / "known_hosts"),
        "password_env": "SFTP_PASSWORD",
    }
    return RemoteSource.model_validate(tables | changed)


def visit(found, inbox, *layouts, password=PASSWORD, settle=None):
    with sftp_folder(found, environment={"SFTP_PASSWORD": password}) as folder:
        return fetch(
            folder,
            inbox=inbox,
            patterns=found.files,
            layouts=layouts,
            settle=settle,
        )


def test_files_come_once_and_come_again_when_they_changed(theirs, inbox, tmp_path):
    folder, served = theirs
    (folder / "a.csv").write_text("one")
    (folder / "b.txt").write_text("not asked for")
    found = source(served, tmp_path)
    assert visit(found, inbox) == Fetched(("a.csv",), ())
    assert visit(found, inbox) == Fetched((), ())
    (folder / "a.csv").write_text("two!")
    assert visit(found, inbox).names == ("a.csv",)
    assert [(path.name, path.read_text()) for path in inbox.iterdir()] == [("a.csv", "two!")]
    assert sorted(path.name for path in folder.iterdir()) == ["a.csv", "b.txt"]


def test_what_is_no_plain_file_is_left_and_named(theirs, inbox, tmp_path):
    folder, served = theirs
    (folder / "link.csv").symlink_to("/etc/passwd")
    (folder / "folder.csv").mkdir()
    os.mkfifo(folder / "pipe.csv")
    (folder / "a\\..\\b.csv").write_text("x")
    (folder / ".hidden.csv").write_text("x")
    found = visit(source(served, tmp_path), inbox)
    assert dict(found.left)["link.csv"] == "is not a regular file"
    assert sorted(name for name, _ in found.left) == [
        *(".hidden.csv", "a\\..\\b.csv", "folder.csv", "link.csv", "pipe.csv"),
    ]
    assert list(inbox.iterdir()) == []


def test_a_file_replaced_while_it_is_read_is_not_taken(theirs, inbox, tmp_path):
    folder, served = theirs
    (folder / "a.csv").write_text("x" * 50)
    served.on_read.append("a.csv")
    found = visit(source(served, tmp_path), inbox)
    assert (found.names, found.unfinished) == ((), ("a.csv",))
    assert found.left[0][1].startswith("changed while it was fetched")
    assert list(inbox.iterdir()) == []
    served.on_read.clear()
    assert visit(source(served, tmp_path), inbox).names == ("a.csv",)


@pytest.mark.parametrize(("writes", "brought"), [(3, {"a.csv"}), (99, set())])
def test_a_file_that_is_still_uploaded_is_waited_for(theirs, inbox, tmp_path, writes, brought):
    """Half of it would stand still in the inbox and look whole; its neighbour comes meanwhile."""
    folder, served = theirs
    for name in ("a.csv", "b.csv"):
        (folder / name).write_text("row\n")
    looks: list[str] = []

    def write_on():
        looks.append("")
        if len(looks) <= writes:
            with (folder / "a.csv").open("a") as file:
                file.write("row\n")

    found = visit(source(served, tmp_path), inbox, settle=write_on)
    assert set(found.names) == {"b.csv"} | brought
    assert set(found.unfinished) == {"a.csv"} - brought
    assert len(looks) == (writes + 1 if brought else LOOKS_MAX)
    here = {path.name: path.read_text() for path in inbox.iterdir()}
    assert here == {"b.csv": "row\n"} | dict.fromkeys(brought, "row\n" * 4)
    looked = len(looks)
    again = visit(source(served, tmp_path, files=["b.csv"]), inbox, settle=write_on)
    assert (again, len(looks)) == (Fetched((), ()), looked)


def test_a_done_file_spares_the_wait_and_a_file_may_go_meanwhile(theirs, inbox, tmp_path):
    folder, served = theirs
    (folder / "a.csv").write_text("x")
    (folder / "a.csv.done").write_text("")
    done = FileLayout(files="a*", done_file=".done")
    found = source(served, tmp_path)
    assert visit(found, inbox, done, settle=lambda: pytest.fail("waits")).names == ("a.csv",)
    (folder / "b.csv").write_text("x")
    gone = visit(found, inbox, done, settle=(folder / "b.csv").unlink)
    assert gone == Fetched((), (("b.csv", "is gone again"),))


def test_a_file_comes_when_its_partners_are_there(theirs, inbox, tmp_path):
    folder, served = theirs
    layout = FileLayout(files="a*", done_file=".done", control_file=".control")
    (folder / "a.csv").write_text("x")
    (folder / "a.csv.control").write_text("rows = 0\n")
    found = visit(source(served, tmp_path, files=["*"]), inbox, layout)
    assert found.left == (("a.csv", "not complete yet: waits for a.csv.done"),)
    (folder / "a.csv.done").write_text("")
    assert visit(source(served, tmp_path, files=["*"]), inbox, layout).names == ("a.csv",)
    assert len(list(inbox.iterdir())) == 3


def test_a_key_opens_the_door_too(theirs, inbox, tmp_path):
    folder, served = theirs
    (folder / "a.csv").write_text("x")
    secret = tmp_path / "secret"
    secret.write_text(PASSWORD)
    secret.chmod(0o600)
    by_file = source(served, tmp_path, password_env="", password_file=secret)
    assert visit(by_file, inbox).names == ("a.csv",)
    secret.chmod(0o640)
    with pytest.raises(ConfigurationError, match="others can read it"):
        visit(by_file, inbox)
    (inbox / "a.csv").unlink()
    key = tmp_path / "key"
    served.user_key.write_private_key_file(str(key))
    key.chmod(0o600)
    found = source(served, tmp_path, password_env="", key_file=key)
    assert visit(found, inbox).names == ("a.csv",)
    key.chmod(0o644)
    with pytest.raises(ConfigurationError, match="others can read it"):
        visit(found, inbox)
    key.chmod(0o600)
    key.write_text("no key")
    with pytest.raises(ConfigurationError, match="holds no Ed25519, ECDSA or RSA key"):
        visit(found, inbox)


def test_another_server_is_not_believed(theirs, inbox, tmp_path):
    _, served = theirs
    found = source(served, tmp_path)
    other = paramiko.RSAKey.generate(1024)
    served.known_hosts(tmp_path / "known_hosts", key=other)
    with pytest.raises(SourceUnreadableError, match="host key is another than the known one"):
        visit(found, inbox)
    (tmp_path / "known_hosts").write_text("")
    with pytest.raises(SourceUnreadableError, match="not found in known_hosts"):
        visit(found, inbox)
    for line in (b"h ssh-rsa AAA\n", b"\xff\xfe"):
        (tmp_path / "known_hosts").write_bytes(line)
        with pytest.raises(ConfigurationError, match="holds a line that is none of OpenSSH's"):
            visit(found, inbox)
    (tmp_path / "known_hosts").unlink()
    with pytest.raises(ConfigurationError, match=r"known hosts .* cannot be read"):
        visit(found, inbox)


def test_a_wrong_password_and_an_absent_folder_are_told(theirs, inbox, tmp_path):
    _, served = theirs
    with pytest.raises(SourceUnreadableError, match="it refuses our key or password") as refused:
        visit(source(served, tmp_path), inbox, password="wrong")
    assert "wrong" not in str(refused.value)
    with pytest.raises(ConfigurationError, match="SFTP_PASSWORD, a password, is not set"):
        visit(source(served, tmp_path), inbox, password="")
    gone = source(served, tmp_path, url=f"sftp://{USER}@127.0.0.1:{served.port}/none")
    with pytest.raises(SourceUnreadableError, match="/none cannot be read"):
        visit(gone, inbox)


def test_a_name_that_is_not_utf_8_keeps_no_other_file_away(theirs, inbox, tmp_path):
    folder, served = theirs
    card = "orders-4111-1111-1111-1111.csv"
    for name in (b"orders-caf\xe9.csv", b"a.csv", card.encode()):
        (folder / os.fsdecode(name)).write_text("one")
    came = visit(source(served, tmp_path), inbox)
    assert came.names == ("a.csv",)
    assert sorted(came.misnamed) == ["orders-4111-11**-****-1111.csv", "orders-caf\\xe9.csv"]
    assert dict(came.left) == came.misnamed
    assert "is not UTF-8" in came.misnamed["orders-caf\\xe9.csv"]
    assert [path.name for path in inbox.iterdir()] == ["a.csv"]
