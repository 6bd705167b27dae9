"""What held data is charged for, in bytes: the two cost models."""

from __future__ import annotations

from typing import Final

# limits="capture": about what this program needs, besides the captured frame itself.
CAPTURE_QUEUE: Final = 128
CAPTURE_FRAGMENT: Final = 192

# limits="kernel": struct ipq and struct frag_queue of Linux 6.18, 64 bit.
KERNEL_QUEUE: Final = {4: 200, 6: 184}
# skb->truesize of a packet written to a TUN device (a network card gives other values): packets
# of up to so many bytes occupy so many; above, 4,096 more for each 4,096 bytes begun.
KERNEL_BUFFERS: Final = ((192, 832), (640, 1280), (1664, 2304), (3712, 4352), (7808, 8448))
_PAGE: Final = 4096


def queue_cost(limits: str, version: int) -> int:
    """Return the bytes of a queue without fragments."""
    return KERNEL_QUEUE[version] if limits == "kernel" else CAPTURE_QUEUE


def fragment_cost(limits: str, packet: int, frame: int) -> int:
    """Return the bytes of a held fragment.

    Parameters
    ----------
    limits : str
        Which model.
    packet : int
        Bytes from the IP header to the end of what was captured, link padding included: the
        kernel's buffer was sized before the padding was cut off.
    frame : int
        Captured bytes of the whole frame, and what is beyond 128 bytes around it in its record.
    """
    if limits == "capture":
        return CAPTURE_FRAGMENT + frame
    for longest, size in KERNEL_BUFFERS:
        if packet <= longest:
            return size
    longest, size = KERNEL_BUFFERS[-1]
    pages = -(-(packet - longest) // _PAGE)
    return size + pages * _PAGE
