-- What the links of the history that came with this folder bind: each closes with its own hash and
-- with the one before it, and every night and close of the span lies here, file by file as it was
-- sealed. `sha256sum -c --quiet files.sha256` said before that the files are those of that list.
-- Run it in the folder that holds it: duckdb < history.sql
CREATE VIEW links AS SELECT * FROM read_json('history.jsonl', format = 'newline_delimited', columns = {
    sequence: 'BIGINT', "at": 'VARCHAR', entity: 'VARCHAR', entity_id: 'VARCHAR', event: 'VARCHAR',
    data: 'VARCHAR', previous_hash: 'VARCHAR', hash: 'VARCHAR'});
CREATE VIEW span AS SELECT "from"::VARCHAR AS first, "to"::VARCHAR AS last, accounts
    FROM read_json('manifest.json', columns = {"from": 'VARCHAR', "to": 'VARCHAR', accounts: 'VARCHAR[]'});
CREATE VIEW sums AS SELECT line[:64] AS sha256, line[67:] AS name
    FROM (SELECT unnest(string_split(content, chr(10))) AS line FROM read_text('files.sha256')) WHERE line <> '';
CREATE VIEW manifests AS SELECT content, sha256(content) AS sha256, regexp_replace(filename, '/manifest.json$', '') AS folder
    FROM read_text(['nights/*/*/*/*/*/manifest.json', 'periods/*/*/*/*/manifest.json', 'README.txt'])
    WHERE filename <> 'README.txt';
-- A step that was done again, and a signature that was broken off, lie there and count for nothing.
CREATE MACRO is_attempt(folder) AS regexp_matches(folder, '^nights/([^/]*/){4}([^/]*\.superseded-|signed-)');
CREATE VIEW named AS SELECT folder || '/' || (file ->> '$.name') AS name, file ->> '$.sha256' AS sha256
    FROM (SELECT folder, unnest(from_json(content -> '$.files', '["JSON"]')) AS file FROM manifests);
-- The newest manifest of each step of a night, and that of each close.
CREATE VIEW bound AS SELECT data ->> '$.folder' AS folder, max(sequence) AS sequence,
        arg_max(data ->> '$.manifest', sequence) AS sha256
    FROM links WHERE (entity, event) IN (('run', 'sealed'), ('period', 'closed')) GROUP BY ALL;
CREATE VIEW purged AS SELECT entity_id AS run_id FROM links WHERE (entity, event) = ('retention', 'purges a night');
CREATE VIEW of_span AS SELECT b.* FROM bound b, span s
    WHERE list_contains(s.accounts, split_part(folder, '/', 2) || '/' || split_part(folder, '/', 3))
    AND (starts_with(folder, 'nights/') AND split_part(folder, '/', 4) BETWEEN s.first AND s.last
            AND split_part(folder, '/', 5) IN (SELECT entity_id FROM links WHERE (entity, event) = ('run', 'finished'))
        OR starts_with(folder, 'periods/') AND split_part(folder, '/', 4) BETWEEN s.first[:7] AND s.last[:7]);

-- What does not hold: empty.
SELECT sequence, 'does not close with its own hash' AS problem FROM links
WHERE sha256(concat_ws(chr(31), previous_hash, sequence::VARCHAR, "at", entity, entity_id, event, data)) <> hash
UNION ALL
SELECT b.sequence, 'does not close with the one before it' FROM links a JOIN links b ON b.sequence = a.sequence + 1
WHERE b.previous_hash <> a.hash
UNION ALL
-- Between the last link that speaks of these nights and the head others may be left out.
SELECT sequence, 'the link before it is not in this folder'
FROM (SELECT sequence, lag(sequence) OVER (ORDER BY sequence) AS before, max(sequence) OVER () AS head FROM links)
WHERE before <> sequence - 1 AND (sequence < head OR before = sequence)
UNION ALL
SELECT sequence, folder || ': its manifest is not in this folder' FROM of_span b
WHERE NOT EXISTS (FROM manifests m WHERE m.folder = b.folder AND m.sha256 = b.sha256)
UNION ALL
SELECT NULL, folder || ': no link binds its manifest' FROM manifests m
WHERE NOT is_attempt(folder) AND NOT EXISTS (FROM bound b WHERE b.folder = m.folder AND b.sha256 = m.sha256)
UNION ALL
SELECT NULL, name || ': it is not the file that its manifest names' FROM named n JOIN sums s USING (name)
WHERE n.sha256 <> s.sha256
UNION ALL
SELECT NULL, name || ': its manifest names it, and it is not in this folder' FROM named n
WHERE NOT EXISTS (FROM sums s WHERE s.name = n.name) AND split_part(name, '/', 5) NOT IN (FROM purged)
UNION ALL
SELECT NULL, name || ': nobody sealed it' FROM sums s
WHERE regexp_matches(name, '^(nights|periods)/') AND NOT ends_with(name, '/manifest.json') AND NOT is_attempt(name)
    AND NOT EXISTS (FROM named n WHERE n.name = s.name)
UNION ALL
SELECT NULL, name || ': it is not the file that its name says' FROM sums
WHERE starts_with(name, 'facts/') AND NOT ends_with(name, '/' || sha256 || '.parquet')
UNION ALL
SELECT NULL, name || ': files.sha256 does not name it'
FROM (SELECT regexp_replace(file, '^\./', '') AS name FROM glob('**'))
WHERE regexp_matches(name, '^(nights|periods|facts)/') AND name NOT IN (SELECT name FROM sums)
ORDER BY ALL;

-- The span is what was asked for, and the head that which a page or another folder shows.
SELECT count(*) AS links, min(sequence) AS first, max(sequence) AS head, arg_max(hash, sequence) AS head_hash,
    max(sequence) - min(sequence) + 1 - count(*) AS left_out_before_the_head,
    (SELECT first || ' to ' || last || ' of ' || array_to_string(accounts, ', ') FROM span) AS span
FROM links;
