-- The links of the history that came with this folder: each closes with its own hash and with the
-- one before it, and each manifest of a night that was copied is the one that a link binds.
-- Run it in the folder that holds it: duckdb < history.sql
CREATE VIEW links AS SELECT * FROM read_json('history.jsonl', format = 'newline_delimited', columns = {
    sequence: 'BIGINT', "at": 'VARCHAR', entity: 'VARCHAR', entity_id: 'VARCHAR', event: 'VARCHAR',
    data: 'VARCHAR', previous_hash: 'VARCHAR', hash: 'VARCHAR'});
CREATE VIEW manifests AS SELECT content, filename
    FROM read_text(['nights/*/*/*/*/*/manifest.json', 'README.txt']) WHERE filename LIKE 'nights/%';
CREATE VIEW bound AS SELECT data ->> '$.manifest' AS sha256, data ->> '$.folder' AS folder, sequence
    FROM links WHERE event = 'sealed' AND entity = 'run';

-- Links that do not close: empty.
SELECT sequence, 'does not close with its own hash' AS problem FROM links
WHERE sha256(concat_ws(chr(31), previous_hash, sequence::VARCHAR, "at", entity, entity_id, event, data)) <> hash
UNION ALL
SELECT b.sequence, 'does not close with the one before it' FROM links a JOIN links b ON b.sequence = a.sequence + 1
WHERE b.previous_hash <> a.hash
UNION ALL
-- A step of a copied night whose manifest is not the one that the newest link of it binds.
SELECT newest.sequence, newest.folder || ': its manifest is not in this folder'
FROM (SELECT folder, max(sequence) AS sequence, arg_max(sha256, sequence) AS sha256 FROM bound GROUP BY folder) newest
WHERE EXISTS (FROM manifests m WHERE starts_with(m.filename, regexp_replace(newest.folder, '/[^/]*$', '/')))
    AND NOT EXISTS (FROM manifests m WHERE sha256(m.content) = newest.sha256)
ORDER BY ALL;

SELECT count(*) AS links, min(sequence) AS first, max(sequence) AS head, arg_max(hash, sequence) AS head_hash FROM links;
