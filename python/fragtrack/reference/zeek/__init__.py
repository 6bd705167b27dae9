"""The Zeek view: a flow table of its own that observes packets and judges none.

It differs from connection tracking in most rules. Any packet opens a flow, a lone RST too; each
side of a TCP connection has its own state; roles are flipped where the first packet seems to come
from the responder; timeouts are short. `fragtrack.zeek` has the settings and the rows.
"""

from fragtrack.reference.zeek.flows import ZeekFlows
from fragtrack.reference.zeek.segment import Segment

__all__ = ["Segment", "ZeekFlows"]
