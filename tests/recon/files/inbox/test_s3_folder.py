import stat
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from recon.config.file_sources import RemoteSource
from recon.files.inbox.fetching import Fetched, RemoteFile, fetch
from recon.files.inbox.s3_folder import S3Folder, s3_folder
from recon.model.errors import ConfigurationError, SourceUnreadableError
from tests.recon.files.s3_server import serving_s3

KEYS = {"S3_ID": "testing", "S3_SECRET": "testing"}


@pytest.fixture(scope="module")
def storage():
    """The address of a storage with one bucket, and a client of its owner."""
    with serving_s3("books") as server:
        yield server.address, server.client


def source(address, **changed):
    """The storage as an operator declares it."""
    tables = {
        "url": "s3://books/out",
        "files": ["*.csv"],
        "endpoint": address,
        "region": "us-east-1",
        "access_key_env": "S3_ID",
        "secret_key_env": "S3_SECRET",
    }
    return RemoteSource.model_validate(tables | changed)


def visit(found, inbox):
    with s3_folder(found, environment=KEYS) as folder:
        return fetch(folder, inbox=inbox, patterns=found.files)


def test_objects_come_once_and_come_again_when_they_changed(storage, tmp_path):
    address, client = storage
    for name in ("out/a.csv", "out/b.txt", "out/deeper/c.csv", "other/d.csv"):
        client.put_object(Bucket="books", Key=name, Body=b"one")
    assert visit(source(address), tmp_path) == Fetched(("a.csv",), ())
    assert visit(source(address), tmp_path) == Fetched((), ())
    client.put_object(Bucket="books", Key="out/a.csv", Body=b"longer")
    assert visit(source(address), tmp_path).names == ("a.csv",)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.csv", "longer")]
    assert stat.S_IMODE((tmp_path / "a.csv").stat().st_mode) == 0o600


def test_an_object_replaced_while_it_is_read_is_not_taken(storage, tmp_path):
    address, client = storage
    client.put_object(Bucket="books", Key="swap/a.csv", Body=b"one")

    class Swapped(S3Folder):
        def parts(self, name):
            yield from super().parts(name)
            client.put_object(Bucket="books", Key=f"swap/{name}", Body=b"two")

    found = source(address, url="s3://books/swap")
    with s3_folder(found, environment=KEYS) as folder:
        swapped = Swapped(folder._storage, folder="books/swap")
        assert fetch(swapped, inbox=tmp_path, patterns=["*"]).names == ()
        assert isinstance(swapped.again("a.csv"), RemoteFile)
        assert swapped.again("none.csv") is None
    assert list(tmp_path.iterdir()) == []


class _Cutting(BaseHTTPRequestHandler):
    """A storage of one object, whose connection breaks in the middle of it."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Say nothing."""

    def _head(self, status, size):
        self.send_response(status)
        self.send_header("Content-Length", str(size))
        self.send_header("ETag", '"x"')
        self.send_header("Last-Modified", "Fri, 20 Nov 2026 10:00:00 GMT")
        self.end_headers()

    def do_HEAD(self):
        self._head(200, 100)

    def do_GET(self):
        listing = (
            b"<ListBucketResult><KeyCount>1</KeyCount><IsTruncated>false</IsTruncated><Contents>"
            b"<Key>out/a.csv</Key><LastModified>2026-11-20T10:00:00.000Z</LastModified>"
            b"<ETag>x</ETag><Size>100</Size></Contents></ListBucketResult>"
        )
        body = listing if "list-type" in self.path else b"cut"
        self._head(200, len(body) if body is listing else 100)
        self.wfile.write(body)
        self.close_connection = True


def test_a_connection_that_breaks_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("s3fs.core.S3FileSystem.retries", 1)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Cutting)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with pytest.raises(SourceUnreadableError, match="s3://books/out cannot be read"):
            visit(source(f"http://127.0.0.1:{server.server_port}"), tmp_path)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert list(tmp_path.iterdir()) == []


def test_an_absent_bucket_and_absent_keys_are_told(storage, tmp_path):
    address, client = storage
    for url in ("s3://none/out", "s3://books/empty"):
        with pytest.raises(SourceUnreadableError, match=f"{url} cannot be read: there is no such"):
            visit(source(address, url=url), tmp_path)
    with pytest.raises(ConfigurationError, match="OTHER, a key of the storage, is not set"):
        visit(source(address, access_key_env="OTHER"), tmp_path)
    secret = tmp_path / "secret"
    secret.write_text("testing")
    secret.chmod(0o600)
    client.put_object(Bucket="books", Key="kept/b.txt", Body=b"one")
    by_file = source(address, url="s3://books/kept", secret_key_env="", secret_key_file=secret)
    assert visit(by_file, tmp_path) == Fetched((), ())
    secret.chmod(0o644)
    with pytest.raises(ConfigurationError, match="others can read it"):
        visit(by_file, tmp_path)
