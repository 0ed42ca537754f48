-- Every figure of the statement: what was open at both closes, and what moved between them.
SELECT currency, whose, side, name, count(*) AS count, sum(amount)::BIGINT AS amount
FROM (
    SELECT currency, 'gateway' AS whose, side, what AS name, amount FROM open_items
    UNION ALL
    SELECT currency, CASE WHEN is_outside THEN 'outside' WHEN kind = 'reserve' THEN 'reserve' ELSE 'gateway' END, 'moved', kind, amount
    FROM facts, month WHERE event_on BETWEEN first AND last
    UNION ALL
    SELECT currency, 'transit', side, CASE WHEN state <> 'BREAK' AND amount > 0 THEN 'coming' WHEN state <> 'BREAK' THEN 'taken'
        WHEN amount > 0 THEN 'missing' ELSE 'beyond' END, amount
    FROM open_transit
    UNION ALL
    SELECT currency, 'transit', 'moved', move, amount FROM transit_moves, month WHERE counts_on BETWEEN first AND last)
GROUP BY ALL
UNION ALL
SELECT currency, 'ledger', side, what, count(*) FILTER (amount <> 0), sum(amount)::BIGINT
FROM listed_differences WHERE EXISTS (FROM ledger_given) GROUP BY ALL
UNION ALL
SELECT currency, 'ledger', 'moved', CASE WHEN gone_on = '' THEN entry_type ELSE 'entry_vanished' END, count(*), sum(amount)::BIGINT
FROM entries, month WHERE day BETWEEN first AND last AND EXISTS (FROM ledger_given)
GROUP BY ALL;
