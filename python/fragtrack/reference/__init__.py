"""Reassembly in plain Python that reads like the specification.

The same semantics as the native core, complete, row for row and byte for byte; slower.  It runs
where there is no wheel, and is what the core is tested against.
"""

from fragtrack.reference.follower import Follower
from fragtrack.reference.reassembler import Reassembler
from fragtrack.reference.rewriter import Rewriter
from fragtrack.reference.track import Tracker

__all__ = ["Follower", "Reassembler", "Rewriter", "Tracker"]
