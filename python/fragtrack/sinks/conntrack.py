"""Connections and events in the text of the kernel's tool ``conntrack``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fragtrack.sinks.output import Output
    from fragtrack.sinks.rows import Batch
    from fragtrack.verdicts import Connection, Event


class _Lines:
    """Lines of text written to an output."""

    def __init__(self, output: Output) -> None:
        self.output = output

    def put(self, lines: Iterable[str]) -> None:
        """Write lines.

        Raises
        ------
        OSError
            If the output cannot be written.
        """
        if text := "".join(f"{line}\n" for line in lines):
            self.output.write(text.encode("ascii"))

    def finish(self) -> None:
        """Finish the output."""
        self.output.finish()

    def publish(self) -> None:
        """Make the output appear."""
        self.output.publish()

    def discard(self) -> None:
        """Drop what was written."""
        self.output.discard()


class EntryList(_Lines):
    """What ``conntrack -L`` would show: connections that are in the table, not those that ended."""

    def add(self, batch: Batch[Connection]) -> None:
        """Add those of a batch that are in the table: they have time left."""
        from fragtrack.conntrack import format_entry, from_connection

        self.put(
            format_entry(from_connection(row), form="list")
            for row in batch.rows()
            if row.timeout is not None
        )


class EventLines(_Lines):
    """What ``conntrack -E -o timestamp`` would show."""

    def write(self, rows: Sequence[Event]) -> None:
        """Add events."""
        from fragtrack.conntrack import format_entry, from_event

        self.put(format_entry(from_event(row)) for row in rows)
