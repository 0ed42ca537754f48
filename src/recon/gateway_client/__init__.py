"""The HTTP client of the payment gateway. A leaf: of recon it imports `privacy` and `model.money`.

`Gateway` and `AsyncGateway` are the whole of it for a program of one's own (docs/GATEWAY.md).
Beneath, money goes in three phases, because the caller journals between them: `prepare` (pure,
exact bytes), `Transport.send` (once, no retry), `read_batch_reply` (pure, an outcome for every
row).
A payment goes the same way: `prepare_payment`, `send`, `read_payment_reply`. Reads through
`QueryClient`. Whatever the API document does not show is data: `GatewayInterface`.
"""

from recon.gateway_client.addresses import Route
from recon.gateway_client.batches import (
    BatchRow,
    CancelRow,
    CancelSubscriptionRow,
    CaptureRow,
    Operation,
    PreparedRequest,
    RefundRow,
    ReviewRow,
    Row,
    check_rows,
    prepare,
    read_batch_reply,
    without_reply,
)
from recon.gateway_client.errors import (
    AddressError,
    AddressNotRegisteredError,
    CertificateError,
    GatewayClientError,
    InterfaceError,
    InvalidRequestError,
    MerchantRefusedError,
    MisuseError,
    NotSentError,
    QueryRefusedError,
    SignatureRefusedError,
    UnknownOutcomeError,
    UnsignedError,
)
from recon.gateway_client.gateway import AsyncGateway, Connection, Gateway
from recon.gateway_client.interface import (
    GatewayInterface,
    OurAccount,
    ReplyPolicy,
    SignatureState,
    Signer,
)
from recon.gateway_client.pace import QueryLimits
from recon.gateway_client.payments import (
    ApmPayment,
    CardPayment,
    HostedPayment,
    LineItem,
    Payment,
    PaymentReply,
    PreparedPayment,
    payment_without_reply,
    prepare_payment,
    read_payment_reply,
)
from recon.gateway_client.payouts import BankDetails, Beneficiary, Payer, PayoutRow
from recon.gateway_client.queries import (
    FailedKey,
    OrderRecord,
    QueryAnswers,
    QueryClient,
    RefundAnswers,
    RefundRecord,
)
from recon.gateway_client.replies import (
    BatchReply,
    FindingKind,
    FraudCheck,
    ReplyFinding,
    ReplyOutcome,
    RiskFacts,
    RiskReason,
)
from recon.gateway_client.transport import RawReply, Transport

__all__ = [
    "AddressError",
    "AddressNotRegisteredError",
    "ApmPayment",
    "AsyncGateway",
    "BankDetails",
    "BatchReply",
    "BatchRow",
    "Beneficiary",
    "CancelRow",
    "CancelSubscriptionRow",
    "CaptureRow",
    "CardPayment",
    "CertificateError",
    "Connection",
    "FailedKey",
    "FindingKind",
    "FraudCheck",
    "Gateway",
    "GatewayClientError",
    "GatewayInterface",
    "HostedPayment",
    "InterfaceError",
    "InvalidRequestError",
    "LineItem",
    "MerchantRefusedError",
    "MisuseError",
    "NotSentError",
    "Operation",
    "OrderRecord",
    "OurAccount",
    "Payer",
    "Payment",
    "PaymentReply",
    "PayoutRow",
    "PreparedPayment",
    "PreparedRequest",
    "QueryAnswers",
    "QueryClient",
    "QueryLimits",
    "QueryRefusedError",
    "RawReply",
    "RefundAnswers",
    "RefundRecord",
    "RefundRow",
    "ReplyFinding",
    "ReplyOutcome",
    "ReplyPolicy",
    "ReviewRow",
    "RiskFacts",
    "RiskReason",
    "Route",
    "Row",
    "SignatureRefusedError",
    "SignatureState",
    "Signer",
    "Transport",
    "UnknownOutcomeError",
    "UnsignedError",
    "check_rows",
    "payment_without_reply",
    "prepare",
    "prepare_payment",
    "read_batch_reply",
    "read_payment_reply",
    "without_reply",
]
