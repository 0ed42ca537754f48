"""The two charts of page one, placed from cell to cell so that they never cover a table."""

from collections.abc import Mapping
from typing import Any

from openpyxl.chart import BarChart, LineChart, Reference
from openpyxl.chart.layout import Layout, ManualLayout
from openpyxl.chart.shapes import GraphicalProperties
from openpyxl.chart.text import RichText
from openpyxl.drawing.spreadsheet_drawing import AnchorMarker, TwoCellAnchor
from openpyxl.drawing.text import CharacterProperties, Paragraph, ParagraphProperties

from reports.drawing import look as looks
from reports.sheets.ageing import BUCKETS
from reports.sheets.totals_blocks import NIGHT_COLUMN

LABEL_POINTS = 8
BARS: Mapping[str, Any] = {
    "xMode": "edge",
    "yMode": "edge",
    "x": 0.42,
    "y": 0.04,
    "w": 0.54,
    "h": 0.72,
}
"""Where the bars stand, as shares of the chart: left of them each cause has room for its name."""
LINE_EMU = 22_225
"""Thickness of the trend line (English metric units)."""

Box = tuple[int, int, int, int]
"""First column, first row, last column, last row (inclusive), counted from 1."""


def put_trend(sheet: Any, *, nights: tuple[int, int], box: Box) -> None:
    """Open breaks of the last nights as a line from zero."""
    source = sheet.parent["Control totals"]
    chart: Any = LineChart()
    values = Reference(source, min_col=NIGHT_COLUMN + 1, min_row=nights[0], max_row=nights[1])
    chart.add_data(values, titles_from_data=False)
    chart.set_categories(
        Reference(source, min_col=NIGHT_COLUMN, min_row=nights[0], max_row=nights[1])
    )
    series = chart.series[0]
    series.graphicalProperties = GraphicalProperties()
    series.graphicalProperties.line.solidFill = looks.NAVY
    series.graphicalProperties.line.width = LINE_EMU
    series.smooth = False
    series.marker.symbol = "circle"
    series.marker.size = 4
    chart.legend = None
    _finish(sheet, chart, box=box)


def put_age_bars(sheet: Any, *, rows: tuple[int, int], box: Box) -> None:
    """Open breaks by cause, stacked by age, in the order of the table beside it."""
    chart: Any = BarChart()
    chart.type, chart.grouping, chart.overlap, chart.gapWidth = "bar", "stacked", 100, 50
    values = Reference(sheet, min_col=3, max_col=2 + len(BUCKETS), min_row=rows[0], max_row=rows[1])
    chart.add_data(values, titles_from_data=True)
    chart.set_categories(Reference(sheet, min_col=2, min_row=rows[0] + 1, max_row=rows[1]))
    for series, colour in zip(chart.series, looks.AGE_COLOURS, strict=True):
        series.graphicalProperties.solidFill = colour
    chart.legend.position = "b"
    chart.x_axis.scaling.orientation = "maxMin"
    chart.x_axis.tickLblSkip = 1
    chart.x_axis.txPr = _small_text()
    chart.layout = Layout(manualLayout=ManualLayout(layoutTarget="inner", **BARS))
    chart.y_axis.crosses = "max"
    _finish(sheet, chart, box=box)


def _small_text() -> RichText:
    """Labels that fit beside one bar each: a label left out is a cause without a name."""
    look = CharacterProperties(sz=LABEL_POINTS * 100)
    return RichText(p=[Paragraph(pPr=ParagraphProperties(defRPr=look), endParaRPr=look)])


def _finish(sheet: Any, chart: Any, *, box: Box) -> None:
    chart.x_axis.delete = chart.y_axis.delete = False
    chart.y_axis.scaling.min = 0
    chart.y_axis.number_format = "0"
    chart.y_axis.majorGridlines = None
    first_column, first_row, last_column, last_row = box
    start = AnchorMarker(col=first_column - 1, row=first_row - 1)
    end = AnchorMarker(col=last_column, row=last_row - 1)
    chart.anchor = TwoCellAnchor(editAs="twoCell", _from=start, to=end)
    sheet.add_chart(chart)
