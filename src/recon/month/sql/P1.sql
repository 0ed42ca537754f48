-- The nights as a chain, and the breaks that they opened and closed, code by code: open before the month, with
-- what every night says became of its breaks, is what the last night by the close shows as open.
WITH own AS (SELECT n.* FROM nights n, month WHERE n.business_date BETWEEN first AND last),
chain AS (SELECT number, predecessor, coalesce(lag(run_id) OVER (ORDER BY number), '') AS run_before FROM nights WHERE number >= 0),
opening AS (SELECT max(number) AS number FROM nights, month WHERE business_date < first),
closing AS (SELECT max(number) AS number FROM nights, month WHERE business_date <= last),
rolled AS (
    SELECT code, currency, 1 AS open, coalesce(exposure, 0) AS exposure, 0 AS shown, 0 AS shown_exposure
    FROM breaks SEMI JOIN opening USING (number)
    UNION ALL
    SELECT code, currency, 1, exposure, 0, 0 FROM movements SEMI JOIN own USING (number) WHERE code <> ''
    UNION ALL
    SELECT code_before, currency_before, -1, -exposure_before, 0, 0
    FROM movements SEMI JOIN own USING (number) WHERE code_before <> ''
    UNION ALL
    SELECT code, currency, 0, 0, 1, coalesce(exposure, 0) FROM breaks SEMI JOIN closing USING (number)
)
SELECT 'P1' AS id, 'business days = those with a night' AS name, '' AS currency, 'count' AS measure,
    (SELECT count(*) FROM due) AS "left", (SELECT count(*) FROM due WHERE day IN (SELECT business_date FROM own)) AS "right"
UNION ALL
SELECT 'P1', 'nights that carry on from another than the one before', '', 'count', count(*), 0
FROM own JOIN chain USING (number) WHERE chain.predecessor <> run_before
UNION ALL
SELECT 'P1', 'open before + what nights say became of breaks = open at the close, ' || code, currency, 'count',
    sum(open)::BIGINT, sum(shown)::BIGINT
FROM rolled GROUP BY code, currency
UNION ALL
SELECT 'P1', 'open before + what nights say became of breaks = open at the close, ' || code, currency, 'amount',
    sum(exposure)::BIGINT, sum(shown_exposure)::BIGINT
FROM rolled GROUP BY code, currency;
