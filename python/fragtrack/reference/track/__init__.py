"""Connection tracking in plain Python that reads like the specification.

After Linux 6.18: `tracker` is the order of things for one packet, `tcp` and `window` what makes
TCP, the other modules one protocol or one idea each.
"""

from fragtrack.reference.track.table import Connections, Verdicts
from fragtrack.reference.track.tracker import Tracker

__all__ = ["Connections", "Tracker", "Verdicts"]
