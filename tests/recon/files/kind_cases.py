"""Files of every kind in every format, right and wrong, each made from its own number alone."""

import io
import json
import random
import zipfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet as pq

from tests.recon.files.strict_kinds import KINDS
from tests.recon.files.strict_reader import MAIN, SHEET, Cells

FORMATS = ("csv", "csv", "jsonl", "xml", "xlsx", "xlsx", "parquet", "parquet")
AT = "2026-01-05T10:00:{n:02}Z"
OWN = ("100042", "100042001")
SETTLED = ("B-1", *OWN, "2026-01-05", "capture", "A-{n}", "T", "G", "EUR", "9.00")
REFUNDED = ("B-1", *OWN, "2026-01-05", "refund", *3 * ("",))
RIGHT = {
    "orders": [
        (*OWN, "A-{n}", "EUR", "10.{n:02}", "paid", AT, *("T-{n}", "", "", AT), *4 * ("",)),
        (*OWN, "A-{n}", "JPY", "10", "paid", AT, *4 * ("",), "capture", "9", "sent", "R-{n}"),
        (*OWN, "A-{n}", "KWD", "1.{n:03}", "partially_refunded", AT, "", "", "0.100", *5 * ("",)),
        (*OWN, "A-{n}", "EUR", "5.00", "authorised", AT, *4 * ("",), "cancel", "5.00", "", ""),
    ],
    "ledger": [
        ("E-{n}", *OWN, "A-{n}", "capture", "EUR", "10.{n:02}", AT, "T-{n}", "G {n}", "", "", ""),
        ("E-{n}", *OWN, "", "adjustment", "EUR", "-10.00", AT, *3 * ("",), "USD", "-11.50"),
        ("E-{n}", *OWN, "A-{n}", "fee_reversal", "JPY", "10", AT, "", "", "E-0", "", ""),
    ],
    "settlement": [
        (*SETTLED, "0.{n:02}", "", "", "card", "visa {n}", "EEA"),
        (*SETTLED, "0.50", "8.50", *4 * ("",)),
        (*REFUNDED, "EUR", "-9.00", "0.00", "-9.00", "R-{n}", "", "", "EEA"),
        (
            "B-1",
            *OWN,
            "2026-01-05",
            "payout",
            *3 * ("",),
            "KWD",
            "1.000",
            "-1.{n:03}",
            "2.{n:03}",
            *4 * ("",),
        ),
    ],
    "instructions": [
        (*OWN, "capture", "R-{n}", "A-{n}", "T-{n}", "EUR", "10.00", "sent", "", "", ""),
        (*OWN, "review", "R-{n}", "A-{n}", "T-{n}", "EUR", "0.00", "", "1", "", ""),
        (*OWN, "cancel_subscription", "R-{n}", "", "", "EUR", "", "", "", "S-{n}", "Box {n}"),
        (*OWN, "refund", "R-{n}", "A-{n}", "T-{n}", "JPY", "{n}1", "", "", "", ""),
    ],
}
ODD = (
    *(
        "",
        " ",
        "x",
        "NaN",
        "inf",
        "1e3",
        "1_000.00",
        "\uff11\uff10.00",
        "-1.00",
        "+1.00",
        "10,00",
        "1.5",
    ),
    *("10.001", "007.00", "9" * 16, "0", "12.", ".5", "0x1F", "TRUE", "null", '"', '""', 'a"b'),
    *("a\nb", "a\r\nb", "JPY", "KWD", "EUX", "eur", "XAU", "A\u200b", "\u0410-1", "é", "\ufeff"),
    *("2026-02-30", "2026-01-05", "2026-01-05 10:00", "2026-01-05T24:00:00Z", "20260105"),
    *("2026-01-05T10:00:60Z", "0001-01-01T00:00:00Z", "2026-01-05T10:00:00+25:00", "9999-12-31"),
    *("2026-01-05T10:00:00.1234567Z", "2026-01-05T10:00:00,5Z", "\u00a010.00", "\x1c10.00", "\x85"),
    *("paid ", "PAID", "bezahlt", "refunded", "a,b", "a;b", "a\tb", "=1+1", "\x00", "\x0b", "﹒"),
    *("A" * 50, "A" * 51, "#1", "a/b:c", "{}", "[]", "&amp;", "<b>", "]]>", "A-1\u2028"),
)
NUMBERS = ("10.5", "10", "1e2", "-1", "1E400", "0.10", "12345678901234567", "10.00", "-0", "1.0e0")
BYTES = b"\x00\n\r\",;'\xff\xc3\xef\xbb\xbf {}[]:<>/&=-.0129eEAaZ\x1a\x80"


FURTHER = (
    *("capture", "refund", "cancel", "review", "payout", "adjustment", "write_off", "USD", "-5.00"),
    *("-0.00", "--1.00", "5.00", "0.00", "0", "5", "-5", "10.000", "1", "-1", "2026-01-05T10:00Z"),
    *("9" * 15, f"{'9' * 15}.99", "100000000000000.00", "A" * 65, "R 1", "ﬁ", "2026-1-05"),
    *("9999-12-31", "0001-01-01", "2200-01-01", "1969-12-31"),
)
TYPES = (
    *(pa.decimal128(12, 2), pa.decimal128(12, 4), pa.int64(), pa.int32(), pa.float64(), pa.bool_()),
    *(pa.timestamp("ms"), pa.timestamp("us", tz="UTC"), pa.timestamp("ns", tz="Asia/Tokyo")),
    *(pa.date32(), pa.binary(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())),
)


Right = Mapping[str, Sequence[Sequence[str]]]
"""Kind -> rows that a file of it may have."""


def case(
    number: int, *, right: Right = RIGHT
) -> tuple[str, str, bytes, list[tuple[int, Cells]] | None]:
    """The kind, name and bytes of a case, and its rows where they are known beforehand.

    `right` has the rows that are bent, `{n}` in a cell standing for the number of its line.
    """
    chance = random.Random(f"kind {number}")
    kind, form = chance.choice(tuple(KINDS)), chance.choice(FORMATS)
    rows = [_row(chance, n, right=right[kind]) for n in range(chance.choice((1, 1, 2, 3, 6)))]
    names = list(KINDS[kind].names)
    kept = range(KINDS[kind].needed if chance.random() < 0.1 else len(names))
    names, rows = [names[n] for n in kept], [[row[n] for n in kept] for row in rows]
    name = f"{kind}-1.{form}"
    if form == "parquet":
        return kind, name, *_parquet(chance, names, rows)
    if form == "xlsx":
        return kind, name, _xlsx(chance, names, rows), None
    text = {"csv": as_csv, "jsonl": as_jsonl, "xml": as_xml}[form](chance, rows, names=names)
    content = text.encode("utf-8", "surrogatepass")
    for _ in range(chance.choice((0, 0, 0, 1, 1, 3))):
        content = bent(chance, content)
    return kind, name, content, None


def _row(chance: random.Random, number: int, *, right: Sequence[Sequence[str]]) -> list[str]:
    cells = [cell.format(n=number) for cell in chance.choice(right)]
    for _ in range(chance.choice((0, 0, 0, 1, 1, 2))):
        cells[chance.randrange(len(cells))] = chance.choice((*ODD, *FURTHER, *FURTHER))
    return cells


def as_csv(chance: random.Random, rows: list[list[str]], *, names: Sequence[str]) -> str:
    """The rows as CSV, now and then with a cell too many or too few."""
    end = chance.choice(("\n", "\n", "\r\n"))
    quoted = chance.random()
    lines = [",".join(_header(chance, names))]
    for cells in rows:
        if chance.random() < 0.05:
            cells.append("extra") if chance.random() < 0.5 else cells.pop()
        lines.append(",".join(_quoted(chance, cell, share=quoted) for cell in cells))
        if chance.random() < 0.05:
            lines.append("")
    return (
        chance.choice(("", "", "\ufeff")) + end.join(lines) + (end if chance.random() < 0.9 else "")
    )


def _header(chance: random.Random, names: Sequence[str]) -> list[str]:
    header = list(names)
    if chance.random() < 0.03:
        header[chance.randrange(len(header))] = chance.choice(("", "status", "Amount", " amount "))
    return header


def _quoted(chance: random.Random, cell: str, *, share: float) -> str:
    if chance.random() < 0.03:
        return cell
    needs = any(mark in cell for mark in ',"\r\n')
    return (
        f'"{cell.replace(chr(34), chr(34) * 2)}"' if needs or chance.random() < share / 4 else cell
    )


def as_jsonl(chance: random.Random, rows: list[list[str]], *, names: Sequence[str]) -> str:
    """The rows as JSON lines, now and then with a value that is no text."""
    lines = []
    for cells in rows:
        pairs = [
            f"{json.dumps(name)}:{json.dumps(cell)}"
            for name, cell in zip(names, cells, strict=True)
        ]
        if chance.random() < 0.3:
            place = chance.randrange(len(pairs))
            value = chance.choice((*NUMBERS, "null", "true", "NaN", "[1]", '{"a":1}', '"\\ud800"'))
            pairs[place] = f"{json.dumps(names[place])}:{value}"
        if chance.random() < 0.05:
            pairs.append(chance.choice(pairs))
        lines.append("{" + ",".join(pairs) + "}")
    return "\n".join(lines) + "\n" * chance.choice((0, 1, 2))


def as_xml(chance: random.Random, rows: list[list[str]], *, names: Sequence[str]) -> str:
    """The rows as XML, now and then with what no record should hold."""
    head = chance.choice(("", '<?xml version="1.0" encoding="utf-8"?>\n', "<!-- c -->"))
    doctype = '<!DOCTYPE o [<!ENTITY e "10.00">]>' if chance.random() < 0.03 else ""
    records = []
    for cells in rows:
        leaves = [
            f"<{name}>{_cell(chance, cell)}</{name}>"
            for name, cell in zip(names, cells, strict=True)
        ]
        if chance.random() < 0.1:
            leaves.insert(
                chance.randrange(len(leaves)), chance.choice((leaves[0], "text", "<?p?>", "<x/>"))
            )
        records.append(f"<order>{''.join(leaves)}</order>")
    return f"{head}{doctype}<orders>{'  '.join(records)}</orders>"


def _cell(chance: random.Random, cell: str) -> str:
    if chance.random() < 0.03:
        return chance.choice((cell, "&e;", f"<![CDATA[{cell}]]>", f"{escape(cell)}<!-- c -->"))
    return escape(cell)


def bent(chance: random.Random, content: bytes) -> bytes:
    """The bytes cut, or with one gone, added or changed."""
    place = chance.randrange(len(content) + 1)
    match chance.randrange(4):
        case 0:
            return content[:place]
        case 1:
            return content[:place] + content[place + chance.choice((1, 1, 5)) :]
        case 2:
            return content[:place] + bytes([chance.choice(BYTES)]) + content[place:]
    return content[:place] + bytes([chance.choice(BYTES)]) + content[place + 1 :]


def _xlsx(chance: random.Random, names: list[str], rows: list[list[str]]) -> bytes:
    line, parts = chance.choice((1, 1, 1, 2, 4)), []
    faced = chance.choice((0.0, 0.0, 0.02))
    for cells in (names, *rows):
        inner = "".join(
            _book_cell(
                chance, text, place=f"{chr(65 + at)}{line}", faced=None if cells is names else faced
            )
            for at, text in enumerate(cells)
        )
        if chance.random() < 0.03:
            inner += f'<c r="{chr(65 + len(cells))}{line}" t="inlineStr"><is><t>x</t></is></c>'
        parts.append(f'<row r="{line}">{inner}</row>')
        line += chance.choice((1, 1, 1, 1, 2))
    data = f"<sheetData>{''.join(parts)}</sheetData>"
    if chance.random() < 0.02:
        data += data
    sheet = f'<worksheet xmlns="{SPACE}">{data}</worksheet>'
    text = sheet.encode("utf-8", "surrogatepass")
    if chance.random() < 0.3:
        text = bent(chance, text)
    strings = "".join(f"<si><t>{text}</t></si>" for text in STRINGS)
    content = book_of(text, strings=strings)
    return bent(chance, content) if chance.random() < 0.2 else content


TWO_FACED = (
    '<c r="{place}"><v>12&#51;.45</v></c>',
    '<c r="{place}"><v>1<!--x-->0</v></c>',
    '<c r="{place}"><v><![CDATA[10.50]]></v></c>',
    '<c r="{place}"><v>1<?x y?>0.25</v></c>',
    '<c r="{place}"><v>1</v><v>2</v></c>',
    '<c r="{place}"><v>5</v><is><t>6.00</t></is></c>',
    '<c r="{place}"><z:v xmlns:z="urn:z">7</z:v></c>',
    '<c r="{place}" t="inlineStr"><is><t>1.00</t></is><v/></c>',
    '<c r="{place}" t="inlineStr"><v>9</v></c>',
    '<c r="{place}" t="inlineStr"><is><t>1.<!--x-->00</t></is></c>',
    '<c r="{place}" t="str"><v>A-&#49;</v></c>',
    '<c r="{place}"><f>1+1</f></c>',
    '<c r="{place}"><f>1+1</f><v><!--x--></v></c>',
    *(
        f'<c r="{{place}}" t="s"><v>{index}</v></c>'
        for index in ("0", "1", "2", "3", "-1", "x", "0.5", "00", "", " 1")
    ),
)
"""Cells of which one reader may take another value than the next."""
STRINGS = ("1.00", "paid", "A-&amp;1")


def _book_cell(chance: random.Random, text: str, *, place: str, faced: float | None) -> str:
    """A cell; `faced`: the share of two-faced ones, None of a header, where all are plain."""
    plain = faced is None
    if not text and chance.random() < 0.5:
        return ""
    if not plain and chance.random() < 0.06:
        number = chance.choice(
            ("10.5", "1e2", "0.1", "46027.5", "1e15", "1E-3", "12345678901234567")
        )
        style = ' s="1"' if number == "46027.5" else ""
        return f'<c r="{place}"{style}><v>{number}</v></c>'
    if not plain and chance.random() < 0.02:
        return f'<c r="{place}" t="{chance.choice("be")}"><v>1</v></c>'
    if faced and chance.random() < faced:
        return chance.choice(TWO_FACED).format(place=place)
    kept = "".join(mark for mark in text if mark >= " " or mark in "\t\n")
    return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{escape(kept)}</t></is></c>'


SPACE = MAIN[1:-1]
"""The name space of sheets."""
SCHEMAS = "http://schemas.openxmlformats.org"
RELATION = f"{SCHEMAS}/officeDocument/2006/relationships"
RELATIONS = f'<Relationships xmlns="{SCHEMAS}/package/2006/relationships">'
STYLES = f"""<styleSheet xmlns="{SPACE}"><cellXfs count="2"><xf numFmtId="0"/>\
<xf numFmtId="22" applyNumberFormat="1"/></cellXfs></styleSheet>"""


def book_of(sheet: str | bytes, *, strings: str = "", styles: str = STYLES) -> bytes:
    """A workbook of one sheet, given as its XML; `strings` are the elements of the shared ones."""
    relations = "".join(
        f'<Relationship Id="r{at}" Type="{RELATION}/{kind}" Target="{target}"/>'
        for at, (kind, target) in enumerate(
            (
                ("worksheet", "worksheets/sheet1.xml"),
                ("styles", "styles.xml"),
                ("sharedStrings", "sharedStrings.xml"),
            ),
            start=1,
        )
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{SCHEMAS}/package/2006/content-types">'
        '<Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": f'{RELATIONS}<Relationship Id="r1" Type="{RELATION}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{SPACE}" xmlns:r="{RELATION}"><sheets>'
        '<sheet name="orders" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f"{RELATIONS}{relations}</Relationships>",
        "xl/sharedStrings.xml": f'<sst xmlns="{SPACE}">{strings}</sst>',
        "xl/styles.xml": styles,
        SHEET: sheet,
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as book:
        for name, text in parts.items():
            book.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _parquet(
    chance: random.Random, names: list[str], rows: list[list[str]]
) -> tuple[bytes, list[tuple[int, Cells]] | None]:
    """A file whose pages have check sums, so that a bent page is refused or means the same."""
    columns: dict[str, pa.Array] = {}
    for at, name in enumerate(names):
        texts = [row[at].encode("utf-8", "replace").decode() for row in rows]
        columns[name] = pa.array([text if text or at % 2 else None for text in texts], pa.string())
    if chance.random() < 0.4:
        name, kind = chance.choice(names), chance.choice(TYPES)
        columns[name] = _typed(chance, kind, texts=columns[name])
    table = pa.table(columns)
    # Without the schema of Arrow a file knows no zone but UTC.
    zoned = any(getattr(kind, "tz", None) for kind in table.schema.types)
    out = io.BytesIO()
    pq.write_table(
        table,
        out,
        row_group_size=chance.choice((1, 2, 100)),
        compression=chance.choice(("none", "snappy", "zstd")),
        use_dictionary=chance.random() < 0.5,
        data_page_version=chance.choice(("1.0", "2.0")),
        write_page_checksum=True,
        store_schema=chance.random() < 0.5 or zoned,
    )
    content = out.getvalue()
    if chance.random() < 0.3:
        footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        place = chance.randrange(footer)
        content = content[:place] + bytes([chance.choice(BYTES)]) + content[place + 1 :]
    known = [_parquet_cells(table, row) for row in range(table.num_rows)]
    return content, None if None in known else list(enumerate(filter(None, known), start=2))


def _typed(chance: random.Random, kind: pa.DataType, *, texts: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(kind) or pa.types.is_large_string(kind):
        return texts.cast(kind)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        at = datetime(2026, 1, 5, 10, 30, 1, tzinfo=UTC)
        return pa.array([at.date() if pa.types.is_date(kind) else at] * len(texts), kind)
    if pa.types.is_binary(kind):
        return pa.array([b"x"] * len(texts), kind)
    number: Any = chance.choice((10, 0, 5, 1))
    if pa.types.is_decimal(kind):
        number = chance.choice((Decimal("10.50"), Decimal(10), Decimal("-1.00"), Decimal("0.10")))
    return pa.array([bool(number) if kind == pa.bool_() else number] * len(texts), kind)


def _parquet_cells(table: pa.Table, row: int) -> Cells | None:
    cells = {}
    for name in table.column_names:
        value = table.column(name)[row].as_py()
        match value:
            case bool() | float() | bytes():
                return None
            case None:
                cells[name] = ("", False)
            case str():
                cells[name] = (value.strip(), False)
            case datetime():
                zone = f"{value:%z}"
                zone = "Z" if zone == "+0000" else zone
                cells[name] = (f"{value:%Y-%m-%d %H:%M:%S.%f}{zone}", False)
            case Decimal():
                cells[name] = (format(value, "f"), True)
            case _:
                cells[name] = (str(value), False)
    return cells
