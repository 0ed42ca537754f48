-- DuckDB macros over the lines of settlement files, which are stored in facts files.
-- Table `arrivals` lists the files; variable `paths` says where they are, `merchant` and `account` whose lines count.

-- Rows that do not count, rows that are returned one by one, and the texts by which those are searched.
CREATE TEMP TABLE repeated (file_id BIGINT, row BIGINT);
CREATE TEMP TABLE named (file_id BIGINT, row BIGINT);
CREATE TEMP TABLE searched (key VARCHAR, text VARCHAR);

-- All lines of the files, each with its file and row number; content that arrived under two names appears for each.
CREATE TEMP MACRO arrived_lines() AS TABLE
SELECT lines.*, arrivals.file_id, file_row_number AS row, arrivals.name AS source
FROM read_parquet(getvariable('paths'), filename = true, file_row_number = true) AS lines
JOIN arrivals ON path = filename;

-- Lines of the account.
CREATE TEMP MACRO own() AS TABLE
FROM arrived_lines() WHERE merchant_id = getvariable('merchant') AND account_id = getvariable('account');

-- Lines of the account that count.
CREATE TEMP MACRO counted() AS TABLE
FROM own() ANTI JOIN repeated USING (file_id, row);

-- Repeated lines: a line in several files, equal but for its number and tariff, counts as often as in the file with
-- most of it. So the n-th line of a kind is a repeat if an earlier file has an n-th one too.
-- Over a year hardly any batch is in two files, so only those are compared line by line.
CREATE TEMP MACRO repeats() AS TABLE
WITH several AS (
    SELECT batch_id, settled_on FROM arrived_lines() GROUP BY ALL HAVING min(file_id) < max(file_id)
), alike AS (
    SELECT file_id, row, (
        batch_id, merchant_id, account_id, settled_on, entry_type, order_no, transaction_id, reference_no, currency,
        gross, fee, net, own_reference
    ) AS movement
    FROM arrived_lines() SEMI JOIN several USING (batch_id, settled_on)
), numbered AS (
    SELECT *, row_number() OVER (PARTITION BY movement, file_id ORDER BY row) AS nth FROM alike
)
SELECT file_id, row FROM numbered
QUALIFY row_number() OVER (PARTITION BY movement, nth ORDER BY file_id) > 1;

-- Chargebacks of each transaction, less their reversals.
CREATE TEMP MACRO charged_back() AS TABLE
SELECT transaction_id, currency, -sum(gross)::BIGINT AS amount
FROM counted() WHERE entry_type IN ('chargeback', 'chargeback_reversal')
GROUP BY ALL;

-- Payouts of the gateway to the merchant; a payout that the merchant requested has a reference of its own.
CREATE TEMP MACRO paid_out() AS TABLE
FROM counted() WHERE entry_type = 'payout' AND own_reference = '';

-- Lines that contain one of the texts in `searched`.
CREATE TEMP MACRO naming() AS TABLE
FROM counted()
WHERE order_no IN (SELECT text FROM searched WHERE key = 'order_no')
    OR transaction_id IN (SELECT text FROM searched WHERE key = 'transaction_id')
    OR own_reference IN (SELECT text FROM searched WHERE key = 'own_reference');

-- Sums of all other lines settled before a day, few per batch, since the payable balance includes all days. Payouts and
-- reserves keep their types. Fees are summed by payment where contracts are checked payment by payment.
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

-- Volumes by day that a fee contract prices. Late: in tonight's files, for days up to `covered_to`, the last covered
-- before.
CREATE TEMP MACRO volumes(since, priced, tonight, covered_to) AS TABLE
SELECT merchant_id, account_id, entry_type, currency, settled_on, method, brand, region,
    (list_contains(tonight, file_id) AND settled_on <= covered_to)::BIGINT AS late,
    count(*) AS lines, sum(abs(gross))::BIGINT AS base
FROM counted() WHERE settled_on >= since AND list_contains(priced, entry_type)
GROUP BY ALL;

-- Orders in lines settled since a day, and the transactions of lines without an order.
CREATE TEMP MACRO names(since) AS TABLE
SELECT DISTINCT order_no, if(order_no = '', transaction_id, '') AS transaction_id
FROM own() WHERE settled_on >= since;

CREATE TEMP MACRO batches() AS TABLE
SELECT DISTINCT file_id, batch_id FROM own();
