"""Asks the running kernel's connection tracking, one packet at a time.

Two networks, that of the clients and that of the servers, meet in a network namespace without a
name, which vanishes with its file descriptors; no packet leaves it. The plumbing is the kernel
oracle's, a development aid beside the checkout. This adds what the oracle leaves out: SCTP,
UDP-Lite, GRE and protocols without ports; packets and bytes; verification tags.

An answer is a dictionary; what is absent is empty:

``v``
    Class: ``new``, ``established``, ``related``, ``invalid``, ``untracked``; ``-`` if the packet
    never got as far (a fragment, or refused).
``dir``
    0 for the original direction, 1 for the reply direction.
``ev``
    Events: ``new``, ``update``, ``destroy``.
``ct``
    The entry of the packet's tuple afterwards, or None: ``state``, ``timeout`` (seconds as shown),
    ``assured``, ``reply``, ``orig`` (tuple of the original direction), ``count`` (packets and
    bytes, original before reply, where they are counted), ``vtag`` (SCTP).
``key``
    Of a fragment: the tuple of the packet that it is a piece of.
``all``
    Where it was only looked: every entry of the flow.
``tcp``
    Window state behind a packet that belongs to a connection: as `Tracker.inspect` gives it.
``why``
    What the kernel logged.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Self

from fragtrack.verdicts import SCTP_STATES, TCP_STATES
from tests.conftest import SHARED
from tests.live.tuples import ICMP, ICMPV6, TCP, Key, backwards, key_of, shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from tests.live.flow import Step

Answer = dict[str, Any]

PORTS = frozenset({6, 17, 47, 132, 136})
SEEN_REPLY, ASSURED = 1 << 1, 1 << 2
DESTROY, CREATED = 2, 0x600
LEVEL_NETLINK, ADD_MEMBERSHIP = 270, 1

# Attributes of a connection, numbered in linux/netfilter/nfnetlink_conntrack.h.
ORIGINAL, REPLY, STATUS, PROTOCOL_INFO, TIMEOUT = 1, 2, 3, 4, 7
COUNTERS = (9, 10)
INFO_TCP, INFO_SCTP = 1, 3


class UnavailableError(Exception):
    """Why the kernel cannot be asked here."""


def oracle() -> ModuleType:
    """Import the kernel oracle from the folder beside the checkout."""
    folder = SHARED / "kernel_oracle"
    if not (folder / "conntrack_oracle.py").is_file():
        raise UnavailableError("no ../shared/kernel_oracle: it is not part of the sources")
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        raise UnavailableError("asking the kernel needs root: namespaces, TUN devices, BPF")
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return importlib.import_module("conntrack_oracle")


class Kernel:
    """One namespace with a connection tracker, and the settings it runs with."""

    def __init__(self, settings: dict[str, int] | None = None) -> None:
        module = oracle()
        self.net: Any = module.knet
        changed = {"acct": 1, **(settings or {})}  # packets and bytes are counted
        sysctls = {f"netfilter/nf_conntrack_{name}": value for name, value in changed.items()}
        try:
            self.oracle: Any = module.ConntrackOracle(sysctls)
        except (OSError, RuntimeError, KeyError) as error:
            raise UnavailableError(f"this kernel cannot be asked: {error}") from error
        if not self.oracle.sh.spy:
            self.close()
            raise UnavailableError("this kernel does not show the state of its TCP windows")
        self.flows = 0
        self.ends: set[bytes] = set()
        self.known: set[Key] = set()
        self.key: Key | None = None

    def close(self) -> None:
        """Give the namespace up."""
        self.oracle.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------------------ one packet

    def begin(self) -> None:
        """Forget the last flow: its entries may still run out, and say so."""
        self.flows += 1
        self.ends, self.known, self.key = set(), set(), None

    def step(self, step: Step) -> Answer:
        """Write a packet, or only look."""
        answer: Answer = {}
        packet = step.packet
        if packet is None:
            answer["all"] = self._entries()
        else:
            self._remember(packet, key_of(step.whole or packet))
            if step.whole is not None and self.key is not None:
                answer["key"] = shown(self.key)
            self._write(step.side, packet, answer)
        windows = self.oracle.sh.spy.drain()
        why = [text.strip().rstrip(":").strip() for text, _, _ in self.oracle.inv.drain()]
        if why:
            answer["why"] = why
        key = self.key
        if packet is not None:
            answer["ct"] = None if key is None else self.entry(key)
        events = self._events()
        if events:
            answer["ev"] = events
        mine = key is not None and key[2] == TCP and answer.get("ct")
        if windows and mine and answer["v"] != "related":  # an ICMP error belongs to no segment
            answer["tcp"] = windows[-1]
        return answer

    def run(self, steps: Sequence[Step]) -> list[Answer]:
        """Write the packets of a flow, when they are due. `ns` is when that was, from the first."""
        self.begin()
        start = time.monotonic_ns()
        answers = []
        for step in steps:
            wait = start + step.at * 1_000_000 - time.monotonic_ns()
            if wait > 0:
                time.sleep(wait / 1e9)
            now = time.monotonic_ns() - start
            answers.append({**self.step(step), "ns": now})
        return answers

    def _entries(self) -> list[Answer]:
        """Look at all entries of the flow. Those that ran out are ended by that."""
        found = [self.entry(key) for key in sorted(self.known)]
        return sorted(
            {str(it["orig"]): it for it in found if it}.values(), key=lambda it: str(it["orig"])
        )

    def _remember(self, packet: bytes, key: Key | None) -> None:
        ends = packet[12:20] if packet[0] >> 4 == 4 else packet[8:40]
        self.ends |= {ends[: len(ends) // 2], ends[len(ends) // 2 :]}
        if key is not None:
            self.key = key
            self.known |= {key, backwards(key)}

    def _write(self, side: int, packet: bytes, answer: Answer) -> None:
        there, back = self.oracle.tuns[1 - side], self.oracle.tuns[side]
        problem = self.oracle.tuns[side].send(packet)
        if problem:
            answer["error"] = problem
        seen = [prefix for prefix, _, _ in self.oracle.log.drain()]
        answer["v"], direction = seen[0].split() if seen else ("-", "-")
        if direction != "-":
            answer["dir"] = int(direction)
        answer["out"] = len(there.recv_all())
        returned = back.recv_all()
        if returned:
            answer["back"] = [piece.hex() for piece in returned]

    def _events(self) -> list[str]:
        events = []
        for kind, flags, _, _, body in self.oracle.events.drain():
            attributes = self.net.parse_attrs(body)
            if not self.ends.issuperset(self._tuple(attributes[ORIGINAL])[:2]):
                continue  # another flow's
            if kind & 0xFF == DESTROY:
                events.append("destroy")
            else:
                events.append("new" if flags & CREATED else "update")
        return events

    # ------------------------------------------------------------------------------ ctnetlink

    def entry(self, key: Key) -> Answer | None:
        """Look a tuple up, in either direction."""
        family = 2 if len(key[0]) == 4 else 10
        message = self.net.nlmsg(
            self.net.SUBSYS_CT << 8 | 1,
            self.net.NLM_F_REQUEST,
            family,
            0,
            self.net.nest(1, self._attributes(key)),
        )
        self.oracle.ctl.s.send(message)
        for kind, _, _, _, body in self.oracle.ctl._parse(self.oracle.ctl.s.recv(65536)):
            if kind != 2:
                return self._entry(self.net.parse_attrs(body))
            code = -int.from_bytes(body[:4], sys.byteorder, signed=True)
            if code not in {errno.ENOENT, errno.EINVAL}:  # EINVAL: an ICMP type without a pair
                raise OSError(code, os.strerror(code))
        return None

    def _attributes(self, key: Key) -> bytes:
        net = self.net
        src, dst, number, *rest = key
        at = 1 if len(src) == 4 else 3
        addresses = net.nest(1, net.attr(at, src), net.attr(at + 1, dst))
        fields = [net.attr(1, bytes([number]))]
        if number in {ICMP, ICMPV6}:
            at = 4 if number == ICMP else 7
            fields += [net.attr(at, net.be16(rest[0]))]
            fields += [net.attr(at + i, bytes([rest[i]])) for i in (1, 2)]
        elif number in PORTS:
            fields += [net.attr(2, net.be16(rest[0])), net.attr(3, net.be16(rest[1]))]
        return bytes(addresses + net.nest(2, *fields))

    def _tuple(self, body: bytes) -> Key:
        outer = self.net.parse_attrs(body)
        addresses, fields = self.net.parse_attrs(outer[1]), self.net.parse_attrs(outer[2])
        at = 1 if 1 in addresses else 3
        ends, number = (addresses[at], addresses[at + 1]), fields[1][0]
        if number in {ICMP, ICMPV6}:
            at = 4 if number == ICMP else 7
            rest = (int.from_bytes(fields[at]), fields[at + 1][0], fields[at + 2][0])
            return (*ends, number, *rest)
        if 2 in fields:
            return (*ends, number, int.from_bytes(fields[2]), int.from_bytes(fields[3]))
        return (*ends, number)

    def _entry(self, attributes: dict[int, bytes]) -> Answer:
        status = int.from_bytes(attributes[STATUS])
        original = self._tuple(attributes[ORIGINAL])
        found: Answer = {
            "timeout": int.from_bytes(attributes[TIMEOUT]),
            "assured": bool(status & ASSURED),
            "reply": bool(status & SEEN_REPLY),
            "orig": shown(original),
        }
        info = self.net.parse_attrs(attributes.get(PROTOCOL_INFO, b""))
        if INFO_TCP in info:
            found["state"] = TCP_STATES[self.net.parse_attrs(info[INFO_TCP])[1][0]]
        if INFO_SCTP in info:
            inner = self.net.parse_attrs(info[INFO_SCTP])
            found["state"] = SCTP_STATES[inner[1][0]]
            found["vtag"] = [int.from_bytes(inner[2]), int.from_bytes(inner[3])]
        counters = [self.net.parse_attrs(attributes[at]) for at in COUNTERS if at in attributes]
        if counters:
            found["count"] = [int.from_bytes(side[i]) for side in counters for i in (1, 2)]
        return found
