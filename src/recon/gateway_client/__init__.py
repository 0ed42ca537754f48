"""The HTTP client of the payment gateway.

It is self-contained: of recon it imports only `privacy`, `model.errors` and `model.money`.
`Gateway` and `AsyncGateway` are all that a separate program needs (docs/GATEWAY.md). Underneath,
requests that move money have three phases, because the caller journals between them: `prepare`
(pure, exact bytes), `Transport.send` (once, no retry), `read_batch_reply` (pure, an outcome for
every row); for payments `prepare_payment`, `send`, `read_payment_reply`. Queries go through
`QueryClient`. Whatever the API document leaves open is configuration: `GatewayInterface`.
"""

# If sorted, each of these names would become an import statement of its own.
# ruff: isort: skip_file
from recon.gateway_client.addresses import Route as Route
from recon.gateway_client.batches import (
    BatchRow as BatchRow,
    CancelRow as CancelRow,
    CancelSubscriptionRow as CancelSubscriptionRow,
    CaptureRow as CaptureRow,
    Operation as Operation,
    PreparedRequest as PreparedRequest,
    RefundRow as RefundRow,
    ReviewRow as ReviewRow,
    Row as Row,
    check_rows as check_rows,
    prepare as prepare,
    read_batch_reply as read_batch_reply,
    without_reply as without_reply,
)
from recon.gateway_client.errors import (
    AddressError as AddressError,
    CertificateError as CertificateError,
    GatewayClientError as GatewayClientError,
    InterfaceError as InterfaceError,
    InvalidRequestError as InvalidRequestError,
    MisuseError as MisuseError,
    NotSentError as NotSentError,
    QueryRefusedError as QueryRefusedError,
    UnknownOutcomeError as UnknownOutcomeError,
    UnsignedError as UnsignedError,
)
from recon.gateway_client.gateway import (
    AsyncGateway as AsyncGateway,
    Gateway as Gateway,
)
from recon.gateway_client.interface import (
    GatewayInterface as GatewayInterface,
    OurAccount as OurAccount,
    QueryLimits as QueryLimits,
    ReplyPolicy as ReplyPolicy,
    SignatureState as SignatureState,
    Signer as Signer,
)
from recon.gateway_client.payments import (
    ApmPayment as ApmPayment,
    CardPayment as CardPayment,
    HostedPayment as HostedPayment,
    LineItem as LineItem,
    Payment as Payment,
    PaymentReply as PaymentReply,
    PreparedPayment as PreparedPayment,
    payment_without_reply as payment_without_reply,
    prepare_payment as prepare_payment,
    read_payment_reply as read_payment_reply,
)
from recon.gateway_client.payouts import (
    BankDetails as BankDetails,
    Beneficiary as Beneficiary,
    Payer as Payer,
    PayoutRow as PayoutRow,
)
from recon.gateway_client.queries import (
    FailedKey as FailedKey,
    OrderRecord as OrderRecord,
    QueryAnswers as QueryAnswers,
    QueryClient as QueryClient,
    RefundAnswers as RefundAnswers,
    RefundRecord as RefundRecord,
)
from recon.gateway_client.replies import (
    BatchReply as BatchReply,
    FindingKind as FindingKind,
    FraudCheck as FraudCheck,
    ReplyFinding as ReplyFinding,
    ReplyOutcome as ReplyOutcome,
    RiskFacts as RiskFacts,
    RiskReason as RiskReason,
)
from recon.gateway_client.transport import (
    Connection as Connection,
    RawReply as RawReply,
    Transport as Transport,
)
