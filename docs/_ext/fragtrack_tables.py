"""Directives: ``fragtrack-table NAME`` puts a table, ``fragtrack-states`` the drawing of states."""

from __future__ import annotations

from typing import TYPE_CHECKING

import states
import tables
import track_tables
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

TABLES = {**tables.TABLES, **track_tables.TABLES}


class FragtrackTable(SphinxDirective):
    """Put the named table here."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Make the table and parse it where the directive stands."""
        table = TABLES[self.arguments[0]]()
        return self.parse_text_to_nodes(table.markdown())


class FragtrackStates(SphinxDirective):
    """Put the drawing of the TCP states here."""

    def run(self) -> list[nodes.Node]:
        """Draw it; only HTML shows it."""
        return [nodes.raw("", states.svg(), format="html")]


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the directives."""
    app.add_directive("fragtrack-table", FragtrackTable)
    app.add_directive("fragtrack-states", FragtrackStates)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
