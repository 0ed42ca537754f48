"""The HTTP client of the payment gateway. A leaf: of recon it imports `privacy` and `model.money`.

`Gateway` and `AsyncGateway` are the whole of it for a program of one's own (docs/CLIENT.md).
Beneath, money goes in three phases, because the caller journals between them: `prepare` (pure,
exact bytes), `MoneyTransport.send` (once, no retry), `read_batch_reply` (pure, an outcome for every
row).
A payment goes the same way: `prepare_payment`, `send`, `read_payment_reply`. Reads through
`QueryClient`. Whatever the API document does not show is data: `GatewayInterface`.
"""

from recon.gateway_client.gateway import AsyncGateway, Connection, Gateway
from recon.gateway_client.interface.described import GatewayInterface, ReplyPolicy
from recon.gateway_client.interface.line_items import LineItem, decoded_items, encoded_items
from recon.gateway_client.interface.payout import BankDetails, Beneficiary, Payer, PayoutRow
from recon.gateway_client.interface.payout_record import PayoutRecord
from recon.gateway_client.interface.prepare import PreparedRequest, prepare
from recon.gateway_client.interface.reply_outcomes import (
    BatchReply,
    FindingKind,
    ReplyFinding,
    ReplyOutcome,
    RowOutcome,
)
from recon.gateway_client.interface.rows import (
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
from recon.gateway_client.interface.signing import SignatureState
from recon.gateway_client.interface.transport import MoneyTransport, RawReply
from recon.gateway_client.money.batch_reply import read_batch_reply, without_reply
from recon.gateway_client.payments.payment import (
    ApmPayment,
    CardPayment,
    HostedPayment,
    Payment,
    PaymentOperation,
)
from recon.gateway_client.payments.payment_methods import (
    MethodsAnswer,
    MethodsRequest,
    prepare_methods,
    read_methods_reply,
)
from recon.gateway_client.payments.payment_outcome import PaymentRecord, PaymentReply, RiskReason
from recon.gateway_client.payments.payment_reply import payment_without_reply, read_payment_reply
from recon.gateway_client.payments.prepare_payment import PreparedPayment, prepare_payment
from recon.gateway_client.payments.risk_facts import FraudCheck, RiskFacts
from recon.gateway_client.query.key_rounds import QueryAnswers, QueryClient, RefundAnswers
from recon.gateway_client.query.query_bounds import QueryLimits
from recon.gateway_client.query.query_reading import FailedKey
from recon.gateway_client.query.query_reply import OrderRecord
from recon.gateway_client.query.refund_reply import RefundRecord
from recon.gateway_client.wire.html_form import HostedForm
from recon.gateway_client.wire.route import Route
from recon.gateway_client.wire.signer import Signer, Wanted
from recon.gateway_client.wire.signer_socket import SignerSocket
from recon.gateway_client.wire.wire_errors import (
    AddressError,
    AddressNotRegisteredError,
    CertificateError,
    GatewayClientError,
    InterfaceError,
    InvalidBatchError,
    InvalidPaymentError,
    MerchantRefusedError,
    MisuseError,
    NotSentError,
    QueryRefusedError,
    RowProblem,
    SignatureRefusedError,
    UnknownOutcomeError,
    UnsignedError,
)

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
    "Credentials",
    "FailedKey",
    "FindingKind",
    "FraudCheck",
    "Gateway",
    "GatewayClientError",
    "GatewayInterface",
    "HostedForm",
    "HostedPayment",
    "InterfaceError",
    "InvalidBatchError",
    "InvalidPaymentError",
    "LineItem",
    "MerchantRefusedError",
    "MethodsAnswer",
    "MethodsRequest",
    "MisuseError",
    "MoneyTransport",
    "NotSentError",
    "Operation",
    "OrderRecord",
    "Payer",
    "Payment",
    "PaymentOperation",
    "PaymentRecord",
    "PaymentReply",
    "PayoutRecord",
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
    "RowOutcome",
    "RowProblem",
    "SignatureRefusedError",
    "SignatureState",
    "Signer",
    "SignerSocket",
    "UnknownOutcomeError",
    "UnsignedError",
    "Wanted",
    "check_rows",
    "decoded_items",
    "encoded_items",
    "payment_without_reply",
    "prepare",
    "prepare_methods",
    "prepare_payment",
    "read_batch_reply",
    "read_methods_reply",
    "read_payment_reply",
    "without_reply",
]
