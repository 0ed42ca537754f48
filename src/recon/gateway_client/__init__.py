"""The HTTP client of the payment gateway. A leaf: imports nothing else of recon.

Money in three phases, because the caller journals between them: `prepare` (pure, exact bytes),
`MoneyTransport.send` (once, no retry), `read_batch_reply` (pure, an outcome for every row).
Reads through `QueryClient`. Whatever the API document does not show is data: `GatewayInterface`.
"""

from recon.gateway_client.batch_reply import read_batch_reply, without_reply
from recon.gateway_client.errors import (
    AddressError,
    AddressNotRegisteredError,
    CertificateError,
    GatewayClientError,
    InterfaceError,
    InvalidBatchError,
    MerchantRefusedError,
    NotSentError,
    QueryRefusedError,
    RowProblem,
    SignatureRefusedError,
    UnknownOutcomeError,
)
from recon.gateway_client.interface import GatewayInterface, ReplyPolicy
from recon.gateway_client.outcomes import BatchReply, Finding, FindingKind, Outcome, RowOutcome
from recon.gateway_client.payout import BankDetails, Beneficiary, Payer, PayoutRow
from recon.gateway_client.payout_record import PayoutRecord
from recon.gateway_client.prepare import PreparedRequest, prepare
from recon.gateway_client.query import QueryAnswers, QueryClient
from recon.gateway_client.query_bounds import QueryLimits
from recon.gateway_client.query_reply import FailedKey, OrderRecord
from recon.gateway_client.rows import (
    BatchRow,
    CancelRow,
    CancelSubscriptionRow,
    CaptureRow,
    Credentials,
    Operation,
    RefundRow,
    ReviewRow,
    Row,
    check_rows,
)
from recon.gateway_client.signing import SignatureState
from recon.gateway_client.transport import MoneyTransport, RawReply

__all__ = [
    "AddressError",
    "AddressNotRegisteredError",
    "BankDetails",
    "BatchReply",
    "BatchRow",
    "Beneficiary",
    "CancelRow",
    "CancelSubscriptionRow",
    "CaptureRow",
    "CertificateError",
    "Credentials",
    "FailedKey",
    "Finding",
    "FindingKind",
    "GatewayClientError",
    "GatewayInterface",
    "InterfaceError",
    "InvalidBatchError",
    "MerchantRefusedError",
    "MoneyTransport",
    "NotSentError",
    "Operation",
    "OrderRecord",
    "Outcome",
    "Payer",
    "PayoutRecord",
    "PayoutRow",
    "PreparedRequest",
    "QueryAnswers",
    "QueryClient",
    "QueryLimits",
    "QueryRefusedError",
    "RawReply",
    "RefundRow",
    "ReplyPolicy",
    "ReviewRow",
    "Row",
    "RowOutcome",
    "RowProblem",
    "SignatureRefusedError",
    "SignatureState",
    "UnknownOutcomeError",
    "check_rows",
    "prepare",
    "read_batch_reply",
    "without_reply",
]
