-- A line that several files tell, to every column but its number and its tariff, counts as often as the file has it that
-- has it most often: what later files tell as the first, second, ... of its kind is a repeat where an earlier one does.
CREATE TEMP TABLE repeated AS
WITH told AS (
    SELECT lines.*, file_row_number AS row, file_id,
        row_number() OVER (PARTITION BY {told}, file_id ORDER BY file_row_number) AS nth
    FROM read_parquet($paths, filename = true, file_row_number = true) AS lines JOIN arrivals ON path = filename
    WHERE batch_id IN (FROM batches))
FROM told QUALIFY row_number() OVER (PARTITION BY {told}, nth ORDER BY file_id) > 1;

SELECT file_id, row FROM repeated ORDER BY file_id, row;

-- What they come to, as settled_sum has it.
SELECT file_id, {by}, (own_reference <> '')::BIGINT AS is_own, count(*) AS line_count,
    sum(gross) AS gross, sum(fee) AS fee, sum(net) AS net, sum(abs(gross)) AS base
FROM repeated GROUP BY ALL ORDER BY ALL
