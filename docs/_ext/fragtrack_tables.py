"""The directive ``fragtrack-table NAME``: puts a table of `tables` where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sphinx.util.docutils import SphinxDirective
from tables import TABLES

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata


class FragtrackTable(SphinxDirective):
    """Put the named table here."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Make the table and parse it where the directive stands."""
        table = TABLES[self.arguments[0]]()
        return self.parse_text_to_nodes(table.markdown())


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the directive."""
    app.add_directive("fragtrack-table", FragtrackTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
