"""A storage that speaks S3, on this machine: as it should, or with faults, over http or https."""

import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

import boto3
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from moto.server import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    ThreadedMotoServer,
    create_backend_app,
)
from werkzeug.serving import make_server

App = Callable[..., Iterable[bytes]]


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    """With the bucket; of a listing the bucket alone."""
    has_trailer: bool
    """A checksum comes behind its content."""


def _nothing(_: Asked) -> str:
    return ""


class PlayedStorage(ThreadedMotoServer):
    """A storage that may be faulty."""

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(ip_address="127.0.0.1", port=0, verbose=False)
        self._tls = tls
        self.fault: Callable[[Asked], str] = _nothing
        """What is wrong with the answer to a request: busy, dropped, stored (and 500), cut, empty,
        no trailers; "": nothing."""

    def _server_entry(self) -> None:
        app = partial(self._answer, DomainDispatcherApplication(create_backend_app))
        self._server = make_server(
            self._ip_address,
            self._port,
            app,
            threaded=True,
            request_handler=MotoRequestHandler,
            ssl_context=self._tls,
        )
        self._server_ready_event.set()
        self._server.serve_forever()

    def _answer(self, app: App, environ: dict[str, Any], start: Callable[..., Any]) -> Any:
        asked = Asked(
            environ["REQUEST_METHOD"], environ["PATH_INFO"], "HTTP_X_AMZ_TRAILER" in environ
        )
        kind = self.fault(asked)
        if kind in {"busy", "no trailers", "dropped"}:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        match kind:
            case "busy":
                return _refused(start, "503 Slow Down", code="SlowDown")
            case "no trailers":
                return _refused(start, "501 Not Implemented", code="NotImplemented")
            case "dropped":
                return _refused(start, "200 OK", code="")
            case "stored":
                list(app(environ, lambda *_: None))
                return _refused(start, "500 Server Error", code="InternalError")
            case "cut":
                closing = [("Connection", "close")]
                whole = b"".join(app(environ, lambda code, more: start(code, more + closing)))
                return [whole[: len(whole) // 2]]
            case "empty":
                query = dict(parse_qsl(environ["QUERY_STRING"])) | {"prefix": "nothing/"}
                environ["QUERY_STRING"] = urlencode(query)
        return app(environ, start)


def _refused(start: Callable[..., Any], status: str, *, code: str) -> list[bytes]:
    body = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode() if code else b""
    etag = [] if code else [("ETag", '"d41d8cd98f00b204e9800998ecf8427e"')]
    start(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body))), *etag])
    return [body]


class S3Server(NamedTuple):
    """A storage with one bucket more; its state outlives it."""

    process: PlayedStorage
    address: str
    client: Any
    """Its owner's."""


@contextmanager
def serving_s3(bucket: str, *, certificate: Path | None = None) -> Iterator[S3Server]:
    """A storage with this bucket, for as long as the block runs; over https with a certificate."""
    tls = None
    if certificate is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
    process = PlayedStorage(tls=tls)
    process.start()
    try:
        host, port = process.get_host_and_port()
        address = f"http{'s' if tls else ''}://{host}:{port}"
        keys = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
        verify = str(certificate) if certificate else None
        client = boto3.client(
            "s3", endpoint_url=address, region_name="us-east-1", verify=verify, **keys
        )
        client.create_bucket(Bucket=bucket)
        yield S3Server(process, address, client)
    finally:
        process.stop()


def write_certificate(path: Path) -> Path:
    """A key and its own certificate for this machine, in one file."""
    key, name = ec.generate_private_key(ec.SECP256R1()), "storage"
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    here = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(here, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    return path
