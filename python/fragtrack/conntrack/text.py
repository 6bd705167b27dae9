"""Prints entries, byte for byte as the kernel and the tool `conntrack` (1.4.7) do."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fragtrack.conntrack.clock import SECOND, date
from fragtrack.conntrack.entry import FORMS, PROTOCOLS, Entry, Form, Side
from fragtrack.conntrack.markup import render_xml

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMMANDS: Final = {None: "-A", "new": "-A", "update": "-U", "destroy": "-D"}
_WITH_PORTS: Final = frozenset({6, 17, 132, 136})


def format_entry(entry: Entry, form: Form | None = None) -> str:
    """Print an entry, without the end of the line.

    Parameters
    ----------
    entry
        The entry.
    form
        One of `FORMS`; the entry's own if None. What the form does not show is left out.

    Raises
    ------
    ValueError
        The form does not exist, or it is ``event`` and nothing happened to the entry.

    Notes
    -----
    An entry that was parsed and not changed gives the same text back, unusual spacing and unknown
    words included, in the form it was read from.
    """
    if form is None or form == entry.form:
        text = render(entry)
        if entry.written is not None and entry.written[0] == text:
            return entry.written[1]
        return text
    return render(fit(entry, form))


def fit(entry: Entry, form: Form) -> Entry:
    """Change an entry to what another form shows of it."""
    zone = entry.zone or None
    if form == "procfs" and entry.original.zone is None and entry.reply.zone is None:
        zone = entry.zone or 0
    fitted = replace(entry, form=form, zone=zone, written=None, extras=())
    if form != "event":
        return fitted
    original, reply = entry.original, entry.reply
    if entry.event != "destroy":  # the kernel counts aloud only at the end
        original = replace(original, packets=None, bytes=None)
        reply = replace(reply, packets=None, bytes=None)
    return replace(
        fitted,
        original=original,
        reply=reply,
        mark=entry.mark or None,
        use=None,
        delta_time=entry.delta_time if entry.event == "destroy" else None,
        columns=entry.columns or entry.form in {"extended", "procfs"},
    )


def render(entry: Entry) -> str:
    """Print what the fields say, in the form of the entry."""
    if entry.form not in FORMS:
        raise ValueError(f"form: {entry.form!r} is none of {', '.join(FORMS)}")
    if entry.form == "xml":
        return " ".join((render_xml(entry), *userspace(entry)))
    if entry.form == "save":
        return " ".join(_save(entry))
    prefix = ""
    if entry.form == "event":
        if entry.event is None:
            raise ValueError("event: nothing happened to this entry, so there is no event to print")
        kind = f"[{entry.event.upper()}]"
        prefix = f"{kind:>9} "
        if entry.time is not None:
            prefix = f"[{entry.time // SECOND:08}.{entry.time % SECOND // 1000:06}]\t{prefix}"
    if entry.form in {"extended", "procfs"} or (entry.form == "event" and entry.columns):
        prefix += "ipv6     10 " if entry.ip_version == 6 else "ipv4     2 "
    # The kernel itself knows no DCCP any more (since 6.16), the tool does.
    name = "unknown" if entry.form == "procfs" and entry.protocol == 33 else entry.protocol_name
    return f"{prefix}{name:<8} {' '.join(_words(entry))}"


# --------------------------------------------------------------------------------- one line


def _words(entry: Entry) -> Iterator[str]:
    """Give the words behind the name of the protocol, as ``seq_print`` orders them."""
    procfs = entry.form == "procfs"
    yield str(entry.protocol)
    if entry.timeout is not None:
        yield str(entry.timeout)
    if procfs and entry.gre_timeouts is not None:
        yield "timeout={}, stream_timeout={}".format(*entry.gre_timeouts)
    if entry.state is not None:
        yield entry.state
    yield from _side(entry.original, "zone-orig", procfs=procfs)
    if entry.unreplied:
        yield "[UNREPLIED]"
    yield from _side(entry.reply, "zone-reply", procfs=procfs)
    if entry.offload is not None:
        yield f"[{entry.offload}]"
    elif entry.assured:
        yield "[ASSURED]"
    for name, value in (
        ("mark", entry.mark),
        ("secctx", entry.secctx),
        ("zone", entry.zone),
        ("delta-time", entry.delta_time),
    ):
        if value is not None:
            yield f"{name}={value}"
    yield from _tool(entry)
    yield from entry.extras


def _tool(entry: Entry) -> Iterator[str]:
    """Give the last words; most of them only the tool shows."""
    procfs = entry.form == "procfs"
    for name, time in (("start", entry.start), ("stop", entry.stop)):
        if time is not None and not procfs:
            yield f"[{name}={date(time)}]"
    if entry.helper is not None and not procfs:
        yield f"helper={entry.helper}"
    if entry.use is not None:
        yield f"use={entry.use}"
    if procfs:
        return
    if entry.id is not None:
        yield f"id={entry.id}"
    if entry.labels is not None:
        yield f"labels={','.join(entry.labels)}" if entry.labels else "labels"
    if entry.form == "event":
        yield from userspace(entry)


def userspace(entry: Entry) -> Iterator[str]:
    """Tell which program caused an event."""
    if entry.portid is None:
        return
    yield "[USERSPACE]"
    yield f"portid={entry.portid}"
    if entry.progname is not None:
        yield f"progname={entry.progname}"


def _side(side: Side, zone: str, *, procfs: bool) -> Iterator[str]:
    spell = _in_full if procfs else str
    yield f"src={spell(side.src)}"
    yield f"dst={spell(side.dst)}"
    for name, value in (
        ("sport", side.sport),
        ("dport", side.dport),
        ("type", side.icmp_type),
        ("code", side.icmp_code),
        ("id", side.icmp_id),
    ):
        if value is not None:
            yield f"{name}={value}"
    for name, value in (("srckey", side.srckey), ("dstkey", side.dstkey)):
        if value is not None:
            yield f"{name}=0x{value:x}"
    for name, value in ((zone, side.zone), ("packets", side.packets), ("bytes", side.bytes)):
        if value is not None:
            yield f"{name}={value}"


def _in_full(address: str) -> str:
    """Spell an address as the kernel does: IPv6 uncompressed."""
    if ":" not in address:
        return address
    digits = socket.inet_pton(socket.AF_INET6, address).hex()
    return ":".join(digits[n : n + 4] for n in range(0, 32, 4))


# --------------------------------------------------------------------------------- -o save


def _save(entry: Entry) -> Iterator[str]:
    yield _COMMANDS[entry.event]
    if entry.timeout is not None:
        yield f"-t {entry.timeout}"
    status = [] if entry.unreplied else ["SEEN_REPLY"]
    status += ["ASSURED"] if entry.assured else []
    yield f"-u {','.join((*status, *entry.status)) or 'UNSET'}"
    for name, number in (
        ("-w", entry.zone or None),
        ("--orig-zone", entry.original.zone),
        ("--reply-zone", entry.reply.zone),
    ):
        if number is not None:
            yield f"{name} {number}"
    original, reply = entry.original, entry.reply
    source = "-r" if reply.src == original.dst else "-g"  # -g, -n: translated addresses
    destination = "-q" if reply.dst == original.src else "-n"
    yield f"-s {original.src} -d {original.dst} {source} {reply.src} {destination} {reply.dst}"
    yield f"-p {PROTOCOLS.get(entry.protocol, entry.protocol)}"
    for name, value in _options(entry):
        if value is not None:
            yield f"{name} {value}"
    yield from entry.extras
    yield from userspace(entry)


def _options(entry: Entry) -> Iterator[tuple[str, int | str | None]]:
    """Give the options of the protocol with their values."""
    original, reply = entry.original, entry.reply
    if entry.protocol in _WITH_PORTS:
        yield "--sport", original.sport
        yield "--dport", original.dport
        yield "--reply-port-src", reply.sport
        yield "--reply-port-dst", reply.dport
    if entry.protocol == 47:
        yield "--srckey", original.srckey
        yield "--dstkey", original.dstkey
        yield "--reply-key-src", reply.srckey
        yield "--reply-key-dst", reply.dstkey
    if entry.protocol in {1, 58}:
        name = PROTOCOLS[entry.protocol]
        yield f"--{name}-type", original.icmp_type
        yield f"--{name}-code", original.icmp_code
        yield f"--{name}-id", original.icmp_id
    if entry.protocol in {6, 132}:
        yield "--state", entry.state
    if entry.protocol == 132 and entry.vtags is not None:
        yield "--orig-vtag", entry.vtags[0]
        yield "--reply-vtag", entry.vtags[1]
