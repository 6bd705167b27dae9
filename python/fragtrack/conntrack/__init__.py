"""The kernel's text of connection tables: read it, print it, compare it with a capture.

- `parse`, `parse_line`: from the text of ``conntrack -L`` (also with ``-o extended``, ``id``,
  ``ktimestamp``, ``labels``, ``xml``, ``save``), of ``conntrack -E``, and of
  ``/proc/net/nf_conntrack``, to `Entry`.
- `format_entry`: and back, byte for byte.
- `from_connection`, `from_event`: from what a tracker tells.
- `compare`: a dump against the connections of a capture.
"""

from __future__ import annotations

from fragtrack.conntrack.compare import Comparison, Difference, Pair, compare
from fragtrack.conntrack.convert import from_connection, from_event
from fragtrack.conntrack.entry import FORMS, DumpError, Entry, EventKind, Form, Side
from fragtrack.conntrack.parse import parse, parse_line
from fragtrack.conntrack.text import format_entry

__all__ = [
    "FORMS",
    "Comparison",
    "Difference",
    "DumpError",
    "Entry",
    "EventKind",
    "Form",
    "Pair",
    "Side",
    "compare",
    "format_entry",
    "from_connection",
    "from_event",
    "parse",
    "parse_line",
]
