-- What the lines of settlement files come to, as DuckDB reads it in the files of facts.
-- `arrivals` has the files that are asked; the variables `paths`, `merchant` and `account` say where they lie and whose
-- lines count.

-- Rows of the files that do not count, those that stand by themselves, and the texts by which these are looked for.
CREATE TEMP TABLE repeated (file_id BIGINT, row BIGINT);
CREATE TEMP TABLE named (file_id BIGINT, row BIGINT);
CREATE TEMP TABLE wanted (key VARCHAR, text VARCHAR);

-- All lines of the files, each with its file and its row there. A content that came under two names stands under each.
CREATE TEMP MACRO told() AS TABLE
SELECT lines.*, arrivals.file_id, file_row_number AS row, arrivals.name AS source
FROM read_parquet(getvariable('paths'), filename = true, file_row_number = true) AS lines
JOIN arrivals ON path = filename;

-- Those of the account.
CREATE TEMP MACRO own() AS TABLE
FROM told() WHERE merchant_id = getvariable('merchant') AND account_id = getvariable('account');

-- Those of them that count.
CREATE TEMP MACRO counted() AS TABLE
FROM own() ANTI JOIN repeated USING (file_id, row);

-- A line that several files tell, to every column but its number and its tariff, counts as often as the file has it that
-- has it most often: what later files tell as the first, second, ... of its kind is a repeat where an earlier one does.
-- Of a year of files hardly a batch is in two, so only those are looked at line by line.
CREATE TEMP MACRO repeats() AS TABLE
WITH several AS (
    SELECT batch_id, settled_on FROM told() GROUP BY ALL HAVING min(file_id) < max(file_id)
), alike AS (
    SELECT file_id, row, (
        batch_id, merchant_id, account_id, settled_on, entry_type, order_no, transaction_id, reference_no, currency,
        gross, fee, net, own_reference
    ) AS movement
    FROM told() SEMI JOIN several USING (batch_id, settled_on)
), numbered AS (
    SELECT *, row_number() OVER (PARTITION BY movement, file_id ORDER BY row) AS nth FROM alike
)
SELECT file_id, row FROM numbered
QUALIFY row_number() OVER (PARTITION BY movement, nth ORDER BY file_id) > 1;

-- What shoppers' banks took back of each transaction, less what they gave back.
CREATE TEMP MACRO charged_back() AS TABLE
SELECT transaction_id, currency, -sum(gross)::BIGINT AS amount
FROM counted() WHERE entry_type IN ('chargeback', 'chargeback_reversal')
GROUP BY ALL;

-- What the gateway paid out to the merchant; a payout that the merchant asked for has a reference of its own.
CREATE TEMP MACRO paid_out() AS TABLE
FROM counted() WHERE entry_type = 'payout' AND own_reference = '';

-- Lines that some texts name.
CREATE TEMP MACRO naming() AS TABLE
FROM counted()
WHERE order_no IN (SELECT text FROM wanted WHERE key = 'order_no')
    OR transaction_id IN (SELECT text FROM wanted WHERE key = 'transaction_id')
    OR own_reference IN (SELECT text FROM wanted WHERE key = 'own_reference');

-- All other lines settled before a day, a few of each batch: what the gateway owes is of all days. Payouts and reserves
-- stay what they are. Fees are summed up by payment where contracts are checked payment by payment.
CREATE TEMP MACRO older(since, by_payment) AS TABLE
WITH kinds AS (
    SELECT *, CASE
        WHEN entry_type = 'payout' AND own_reference = '' THEN 'payout'
        WHEN entry_type IN ('reserve', 'reserve_reversal') THEN 'reserve'
        ELSE 'earlier' END AS kind
    FROM counted() ANTI JOIN named USING (file_id, row) WHERE settled_on < since
)
SELECT merchant_id, account_id, batch_id, settled_on, currency, kind AS entry_type,
    if(by_payment AND kind = 'earlier' AND fee <> 0, order_no, '') AS order_no,
    if(by_payment AND kind = 'earlier' AND fee <> 0, transaction_id, '') AS transaction_id,
    sum(gross)::BIGINT AS gross, sum(fee)::BIGINT AS fee, sum(net)::BIGINT AS net
FROM kinds GROUP BY ALL;

-- What a fee contract prices of each day. Late is what tonight's files tell of days up to the last one told before.
CREATE TEMP MACRO volumes(since, priced, tonight, told_to) AS TABLE
SELECT merchant_id, account_id, entry_type, currency, settled_on, method, brand, region,
    (list_contains(tonight, file_id) AND settled_on <= told_to)::BIGINT AS late,
    count(*) AS lines, sum(abs(gross))::BIGINT AS base
FROM counted() WHERE settled_on >= since AND list_contains(priced, entry_type)
GROUP BY ALL;

-- What lines settled since a day name: their orders, and transactions of those that name no order.
CREATE TEMP MACRO names(since) AS TABLE
SELECT DISTINCT order_no, if(order_no = '', transaction_id, '') AS transaction_id
FROM own() WHERE settled_on >= since;

CREATE TEMP MACRO batches() AS TABLE
SELECT DISTINCT file_id, batch_id FROM own();
