-- What became of the rows of some orders, as DuckDB reads it in the files of facts.
-- `arrivals` has every file with a row of the accounts, `asked` the orders; the variable `paths` says where the files lie.

-- Of all files only the order numbers are read, then whole only those files that have one of the orders (none: no row
-- of any is taken).
CREATE TEMP TABLE named AS
SELECT file_id, path, order_no FROM read_parquet(getvariable('paths'), filename = true) JOIN arrivals ON path = filename
WHERE order_no IN (FROM asked);

SET VARIABLE paths = coalesce((SELECT list(DISTINCT path ORDER BY path) FROM named), getvariable('paths'));

-- Orders of one row need no decision.
CREATE TEMP TABLE crowded AS
SELECT order_no FROM named GROUP BY order_no HAVING count(*) > 1;

-- Every row of the orders, once for each arrival of its file.
CREATE TEMP MACRO told() AS TABLE
SELECT f.* EXCLUDE (filename, file_row_number), f.file_row_number AS row, a.file_id, a.sender, a.name AS source
FROM read_parquet(getvariable('paths'), filename = true, file_row_number = true) AS f
JOIN arrivals AS a ON a.path = f.filename
WHERE f.order_no IN (FROM asked);

-- Rows of one order with the same content, and since the same instant, say the same.
CREATE TEMP TABLE spoken AS
SELECT *,
    struct_pack(currency, amount, status, ordered_at, transaction_id, expected_captured_amount, refund_amount) AS content
FROM told() WHERE order_no IN (FROM crowded);

-- A file that comes again under its name speaks anew of each order that it names: the rows of its older versions on
-- that order are over, unless the new row says itself that it is older (updated_at). What every newer version says as
-- well is not over, so that a row is of the file that first said it.
CREATE TEMP TABLE last_words AS
SELECT * FROM spoken
WINDOW
    again AS (
        PARTITION BY merchant_id, account_id, order_no, sender ORDER BY file_id
        RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING),
    same AS (
        PARTITION BY merchant_id, account_id, order_no, sender, content, updated_at ORDER BY file_id
        RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
QUALIFY NOT coalesce(
    count(DISTINCT file_id) OVER again > count(DISTINCT file_id) OVER same
    AND (updated_at IS NULL OR bool_or(updated_at IS NULL) OVER again OR max(updated_at) OVER again >= updated_at), false);

-- Of what is left the newest by updated_at stands (a row that says no time is older than any that does), and of rows
-- that say the same the first. Where more than one is left, all stand: DUPLICATE_ORDER_ROW.
CREATE TEMP TABLE decided AS
SELECT file_id, row FROM (
    SELECT * FROM last_words
    QUALIFY updated_at IS NOT DISTINCT FROM max(updated_at) OVER (PARTITION BY merchant_id, account_id, order_no))
QUALIFY row_number() OVER (
    PARTITION BY merchant_id, account_id, order_no, content ORDER BY file_id, line, row) = 1;

-- What became of each row: it stands, it says what one that stands says, it takes the place of an earlier one.
CREATE TEMP TABLE became AS
WITH rows AS (
    SELECT s.*, d.row IS NOT NULL AS stands,
        bool_or(d.row IS NOT NULL) OVER (
            PARTITION BY s.merchant_id, s.account_id, s.order_no, content, updated_at) AS is_said
    FROM spoken AS s LEFT JOIN decided AS d ON d.file_id = s.file_id AND d.row = s.row)
SELECT file_id, row, stands, NOT stands AND is_said AS repeats,
    stands AND coalesce(bool_or(NOT is_said) OVER (
        PARTITION BY merchant_id, account_id, order_no ORDER BY file_id, line, row
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), false) AS replaces
FROM rows;

-- Every row of the orders with what became of it.
CREATE TEMP VIEW order_rows AS
SELECT t.*, coalesce(stands, true) AS stands, coalesce(repeats, false) AS repeats, coalesce(replaces, false) AS replaces
FROM told() AS t LEFT JOIN became USING (file_id, row);
