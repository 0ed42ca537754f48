import subprocess
import sys
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel

from recon.files.kinds.instruction_file import PAYOUT_COLUMNS
from recon.gateway_client import PayoutRow

FROM_COMMON = {"request_id", "payment_amount", "payment_currency", "reason"}
"""Fields that the common columns of the file give."""


def leaves(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every field of a request, dots leading into objects."""
    for name, info in model.model_fields.items():
        path = f"{prefix}{name}"
        below = model_in(info.annotation)
        if below is not None:
            yield from leaves(below, f"{path}.")
        elif path not in FROM_COMMON:
            yield path


def model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that a field holds, if it holds one."""
    for part in (annotation, *get_args(annotation)):
        if isinstance(part, type) and issubclass(part, BaseModel):
            return part
    return None


def test_the_payout_columns_are_the_documents_fields() -> None:
    """The file names a field as the API document does, dots leading into objects."""
    assert list(leaves(PayoutRow)) == list(PAYOUT_COLUMNS)


def test_a_process_that_reads_a_file_loads_no_http() -> None:
    """Each file is read by a process of its own: what it does not need is paid once a file."""
    code = "import sys, recon.files.reader.door; print('httpx' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "False"
