"""A storage that speaks S3, on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import boto3
from moto.server import ThreadedMotoServer


class S3Server(NamedTuple):
    """A storage with one bucket more; its state outlives it."""

    process: ThreadedMotoServer
    address: str
    client: Any
    """Its owner's."""


@contextmanager
def serving_s3(bucket: str) -> Iterator[S3Server]:
    """A storage with this bucket, for as long as the block runs."""
    process = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    process.start()
    try:
        host, port = process.get_host_and_port()
        address = f"http://{host}:{port}"
        keys = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
        client = boto3.client("s3", endpoint_url=address, region_name="us-east-1", **keys)
        client.create_bucket(Bucket=bucket)
        yield S3Server(process, address, client)
    finally:
        process.stop()
