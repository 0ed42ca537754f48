-- The expected amount of a payout received in another currency is its amount at the newest rate up to
-- its value date, rounded half to even; a difference without a break is within that rate's bound.
WITH rates AS (
    SELECT split_part(key, chr(31), 1) AS paid_in, split_part(key, chr(31), 2) AS currency,
        split_part(key, chr(31), 3) AS day, (label::DECIMAL(38, 12) * 1000000000000)::HUGEINT AS units, number AS shift
    FROM 'inputs/terms.parquet' WHERE name = 'rate'
),
bounds AS (
    SELECT split_part(key, chr(31), 1) AS paid_in, split_part(key, chr(31), 2) AS currency, number
    FROM 'inputs/terms.parquet' WHERE name = 'rate_basis_points'
),
paid AS (
    SELECT result_id, bank, currency AS paid_in, sum(amount)::HUGEINT AS amount
    FROM 'results/paid.parquet' WHERE result_id <> '' GROUP BY ALL
),
valued AS (SELECT result_id, min(value_on) AS day FROM 'results/received.parquet' GROUP BY result_id),
shown AS (
    SELECT e.result_id, e.currency,
        -sum(e.amount) FILTER (e.what = 'exchanged at a rate') AS shown,
        coalesce(-sum(e.amount) FILTER (e.what = 'allowed by the rate'), 0) AS allowed
    FROM 'results/explained.parquet' e JOIN paid p ON p.result_id = e.result_id AND p.paid_in <> e.currency
    WHERE e.what IN ('exchanged at a rate', 'allowed by the rate') GROUP BY ALL
),
rated AS (
    SELECT p.bank, s.currency, s.shown, s.allowed, p.amount,
        max_by(r.units, r.day) * 10 ** greatest(any_value(r.shift), 0) AS times,
        1000000000000::HUGEINT * (10 ** greatest(-any_value(r.shift), 0))::HUGEINT AS per,
        any_value(b.number) AS basis_points
    FROM shown s JOIN paid p USING (result_id) JOIN valued v USING (result_id)
    JOIN bounds b ON b.paid_in = p.paid_in AND b.currency = s.currency
    JOIN rates r ON r.paid_in = p.paid_in AND r.currency = s.currency AND r.day <= v.day
    GROUP BY p.bank, s.result_id, s.currency, s.shown, s.allowed, p.amount
),
whole AS (SELECT *, abs(amount) * times::HUGEINT AS exact FROM rated),
halved AS (SELECT *, exact // per AS floor, 2 * (exact % per) AS twice FROM whole),
expected AS (
    SELECT *, sign(amount) * (floor + (twice > per OR (twice = per AND floor % 2 = 1))::INT) AS due FROM halved
)
SELECT
    'T17' AS id, bank || ': exchanged at dated rates = payouts by the rate of the day' AS name,
    '' AS merchant_id, '' AS account_id, currency, 'amount' AS measure,
    sum(shown)::BIGINT AS "left", sum(due)::BIGINT AS "right"
FROM expected GROUP BY bank, currency
UNION ALL
SELECT
    'T17', bank || ': differences beyond what their rate allows', '', '', currency, 'count',
    count(*) FILTER (abs(allowed) * 10000 > abs(due) * basis_points), 0
FROM expected GROUP BY bank, currency;
