"""How many bytes a second each kind of link carries, and one curve of NCCL; and who says so.

What is written on a box is often both directions together (NVLink, PCIe), bits (InfiniBand,
Ethernet), or a peak that no transfer reaches. Here: bytes, one direction, as specified. Memory has
no direction: its rate is what is read and written together, so a copy runs at half of it at most.
"""

from __future__ import annotations

from typing import NamedTuple

GPU_PAGES = "comparison pages, which agree: acecloud.ai, itkb.uw.cz"
H200_SYSTEM = "MLCommons inference v4.1, system description H200-SXM-141GBx8"
INDEX = "ai-infra-index, networking-interconnects"


class Link(NamedTuple):
    """A kind of link, where it lies, its rate, and the source of that rate.

    The rate is one direction's; of memory, that of reads and writes together.
    """

    name: str
    between: str
    bytes_per_second: float
    source: str


LINKS = (
    Link("HBM3e, B200 SXM", "a GPU and its memory", 8e12, f"{GPU_PAGES}, haink.org"),
    Link("HBM3e, H200 SXM", "a GPU and its memory", 4.8e12, GPU_PAGES),
    Link("HBM3, H100 SXM", "a GPU and its memory", 3.35e12, GPU_PAGES),
    Link("HBM2e, A100 80 GB SXM", "a GPU and its memory", 2.039e12, GPU_PAGES),
    Link("NVLink 5, B200", "GPUs of a host or a rack", 900e9, f"{INDEX}: 1800 GB/s both ways"),
    Link(
        "NVLink 4, H100 and H200", "GPUs of one host", 450e9, f"{H200_SYSTEM}: 900 GB/s both ways"
    ),
    Link("NVLink 3, A100", "GPUs of one host", 300e9, f"{INDEX}: 600 GB/s both ways"),
    Link("PCIe 5.0 ×16", "a GPU and its host", 64e9, INDEX),
    Link("PCIe 4.0 ×16", "a GPU and its host", 32e9, INDEX),
    Link("InfiniBand XDR", "hosts", 100e9, f"{INDEX}: 800 Gb/s"),
    Link("InfiniBand NDR", "hosts", 50e9, f"{INDEX}: 400 Gb/s"),
    Link("InfiniBand HDR", "hosts", 25e9, f"{INDEX}: 200 Gb/s"),
    Link("10 Gb/s Ethernet", "hosts", 1.25e9, "its name"),
)

BF16_H100 = 989e12  # floating-point operations a second, dense, H100 SXM; NVIDIA's data sheet

# nccl-tests' all_reduce_perf, float32, out of place, on 16 H100 of two a3-megagpu-8g hosts: the
# microseconds of 8 bytes, 16, 32 and so on to 8 GiB. Each host has eight cards of 200 Gb/s.
# https://github.com/lessizzmore/create-a3mega-ztan-fork/blob/main/ztan-NCCL-test-result
NCCL_MICROSECONDS = (
    *(135.8, 123.2, 123.3, 123.4, 123.0, 123.6, 126.6, 147.1, 125.8, 126.9, 131.6),
    *(138.6, 155.2, 159.4, 159.3, 167.1, 174.2, 203.2, 254.0, 364.6, 571.9),
    *(977.6, 1059.9, 1261.6, 1652.2, 2360.9, 3817.5, 6759.0, 12646, 24361, 47535),
)
NCCL_SECONDS = {8 << power: 1e-6 * time for power, time in enumerate(NCCL_MICROSECONDS)}
CARDS_BYTES_PER_SECOND = 8 * 200e9 / 8


def table(links: tuple[Link, ...] = LINKS) -> str:
    """One line a link: rate, the time that 1 GB takes, name, place."""
    lines = [f"{'GB/s':>8} {'1 GB takes':>11}  {'link':24} between"]
    for link in links:
        rate, milliseconds = link.bytes_per_second / 1e9, 1e12 / link.bytes_per_second
        lines.append(f"{rate:>8,.4g} {milliseconds:>8,.3g} ms  {link.name:24} {link.between}")
    return "\n".join(lines)
