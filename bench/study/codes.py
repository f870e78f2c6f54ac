# SPDX-License-Identifier: BSD-3-Clause
"""Map where erasure codes are faster than repetition, and how well a rule knows it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from bench.page.plot import Picture
from bench.page.units import size
from bench.study import pictures, verdicts
from bench.study.case import Case, Chapter, Numbers, Results, Table
from bench.study.rule import CHUNK_BYTES, CODES, REPEAT, Code, Link, expected_ns
from bench.study.verdicts import fastest_code, mean_ns, verdict
from mpimcast.cli.sim import simulator

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
_US, _S = 1000, 10**9
_BCAST = 3  # enum mmc_kind
_MULTICAST, _REPAIR = 0, 2  # among the kinds of traffic
_UINT32_MAX = 2**32 - 1
_WINDOW_BYTES_MIN = 1 << 20
_AMPLE = 1 << 40  # bytes of a queue or a buffer that hold all that comes
_EVENTS_MAX = 10**12  # a run ends by itself
# The simulator's words for an operation whose result was right, at too great a cost.
_COSTLY = ("control datagrams in an operation", "repairs were sent for")

TRIPS_US = (10, 1000, 25_000, 100_000)
LOSSES_PPM = (1, 10, 100, 1000, 10_000, 100_000)
NRANKS = (2, 16, 188)
SIZES = (64 * KIB, MIB, 16 * MIB)

# By ranks and bytes, how many seeds the time allows; a quarter where losses are rare.
_NSEEDS = {
    **dict(zip(product((2,), SIZES), (200, 100, 8), strict=True)),
    **dict(zip(product((16,), SIZES), (100, 40, 8), strict=True)),
    **dict(zip(product((188,), SIZES[:2]), (40, 10), strict=True)),
}
_RARE_PPM = 10
# The round trips and losses that a test repeats, of the least ranks and bytes.
_QUICK = ((TRIPS_US[1], 0), (TRIPS_US[1], 1000))
_GAIN_MIN = 1.02  # what gains less is not told
_PPM = 10**6


def _grid() -> Iterator[tuple[Link, int]]:
    """Yield each link of the map, and how many seeds it has."""
    for ((nranks, nbytes), nseeds), mbits, trip_us, loss_ppm in product(
        _NSEEDS.items(), CHUNK_BYTES, TRIPS_US, (0, *LOSSES_PPM)
    ):
        link = Link(nranks, nbytes, mbits, trip_us, loss_ppm)
        if loss_ppm > _RARE_PPM:
            yield link, nseeds
        else:
            yield link, -(-nseeds // 4) if loss_ppm else 1


_LARGE = tuple(
    Link(nranks, nbytes, mbits, 25_000, loss_ppm)
    for nranks, nbytes in ((188, 16 * MIB), (2, GIB), (16, GIB))
    for mbits in CHUNK_BYTES
    for loss_ppm in (0, 10, 1000)
)


def cases() -> Iterator[Case]:
    """Yield a case for each link of the map, and for large messages."""
    for link, nseeds in _grid():
        quick = link[:2] == (2, 64 * KIB) and link[3:] in _QUICK
        yield Case(link.name, (link, nseeds), quick)
    for link in _LARGE:
        yield Case(link.name, (link, 1))


def measure(link: Link, nseeds: int) -> Numbers:
    """Send one Bcast with each code and each seed."""
    found: Numbers = {"seeds": nseeds}
    for name, code in CODES.items():
        results = [broadcast(link, code, seed) for seed in range(1, nseeds + 1)]
        times = [result["time_ns"] for result in results]
        mean_ns = sum(times) // nseeds
        found[f"{name} mean_ns"] = mean_ns
        if nseeds > 1:
            squares = sum((time_ns - mean_ns) ** 2 for time_ns in times)
            found[f"{name} error_ns"] = math.isqrt(squares // ((nseeds - 1) * nseeds))
        found[f"{name} extra"] = sum(_extra(link, result) for result in results)
        if costly := sum(bool(result["violation"]) for result in results):
            found[f"{name} costly"] = costly
    return found


def named(link: Link, period: int) -> str:
    """Return the name of a link that loses so many datagrams in a row, as a mean."""
    return f"{link.name}, periods of {period}"


def loss_words(link: Link, period: int) -> str:
    """Return what a link loses, for a table."""
    loss = f"{link.loss_ppm / _PPM:.0e}" if link.loss_ppm else "0"
    return loss + (f" in {period}s" if period > 1 else "")


def _extra(link: Link, result: simulator.Plain) -> int:
    """Return the datagrams of a run that were repairs or parity.

    Those are all that were multicast or repairs, but for the first of each chunk.
    Parity counts as multicast if it goes unasked, and otherwise as repairs.
    """
    sent = sum(
        rank["tx"]["datagrams"][kind]
        for rank in result["ranks"]
        for kind in (_MULTICAST, _REPAIR)
    )
    nchunks: int = -(-link.nbytes // CHUNK_BYTES[link.mbits])
    return sent - nchunks


def _window_bytes(link: Link) -> int:
    """Return twice what is under way in a round trip."""
    product_bytes = link.mbits * link.trip_us // 8
    return min(max(2 * product_bytes, _WINDOW_BYTES_MIN), _UINT32_MAX)


def broadcast(link: Link, code: Code, seed: int, **more: int) -> simulator.Plain:
    """Run a Bcast whose buffers and queues hold all that comes, with more of a spec."""
    spec = {
        "seed": seed,
        "nranks": link.nranks,
        "kind": _BCAST,
        "root": 0,
        "block_bytes": link.nbytes,
        "code_data": code.data,
        "code_parity": code.parity,
        "chunk_bytes": CHUNK_BYTES[link.mbits],
        "window_bytes": _window_bytes(link),
        "known_mbits": link.mbits,
        "eager_bytes": 0,
        "timeout_ns": 100 * _S,
        "buffer_bytes": _AMPLE,
        "queue_bytes": _AMPLE,
        "link_mbits": link.mbits,
        "latency_ns": link.trip_us * _US // 4,
        "loss_ppm": link.loss_ppm,
        "limit_ns": 10_000 * _S,
        "limit_events": _EVENTS_MAX,
        **more,
    }
    result = simulator.run(spec)
    costly = any(words in result["violation"] for words in _COSTLY)
    if result["violation"] and not costly:
        raise RuntimeError(f"{result['violation']}: {spec}")
    return result


# ---- the map -----------------------------------------------------------------


def _cell(results: Results, link: Link) -> str:
    """Return the fastest code of a link, and what it gains; nothing below 2 %."""
    code = fastest_code(results, link)
    gain = mean_ns(results, link, REPEAT) / mean_ns(results, link, code)
    return f"{code}: {gain:.2f}" if gain >= _GAIN_MIN else "-"


def _map(results: Results) -> Table:
    rows = [
        [
            str(nranks),
            size(nbytes),
            f"{mbits // 1000}",
            f"{trip_us / 1000:g}",
            *(
                _cell(results, Link(nranks, nbytes, mbits, trip_us, loss_ppm))
                for loss_ppm in LOSSES_PPM
            ),
        ]
        for (nranks, nbytes), mbits, trip_us in product(_NSEEDS, CHUNK_BYTES, TRIPS_US)
    ]
    heads = ["ranks", "size", "Gbit/s", "round trip, ms"]
    return Table(
        "The code with the least mean time, and the mean time of repetition divided "
        "by it; - where no code gains 2 %.",
        [*heads, *(f"loss {loss_ppm / _PPM:.0e}" for loss_ppm in LOSSES_PPM)],
        rows,
    )


# ---- large messages, repairs -------------------------------------------------


def _large(results: Results) -> Table:
    rows = [
        [
            str(link.nranks),
            size(link.nbytes),
            f"{link.mbits // 1000}",
            loss_words(link, 1),
            *(f"{mean_ns(results, link, code) / 1e6:.0f}" for code in CODES),
        ]
        for link in _LARGE
    ]
    return Table(
        "Times of larger messages in ms, at 25 ms, with one seed.",
        ["ranks", "size", "Gbit/s", "loss", *CODES],
        rows,
    )


def _extras(results: Results) -> Table:
    rows = []
    for nranks, trip_us in product((16, 188), TRIPS_US):
        link = Link(nranks, MIB, 1000, trip_us, 10_000)
        found = results[link.name]
        extras = [found[f"{code} extra"] / found["seeds"] for code in CODES]
        rows.append(
            [
                str(nranks),
                f"{trip_us / 1000:g}",
                *(f"{extra:.0f}" for extra in extras),
                f"{extras[1] / extras[0]:.2f}",
            ]
        )
    return Table(
        "Repairs and parity that ranks sent, in datagrams: 1 MiB at 1 Gbit/s, 721 "
        "chunks, with a loss of 1e-02.",
        ["ranks", "round trip, ms", *CODES, "32,0 : repeat"],
        rows,
    )


_TEXT = [
    (
        "Rank 0 sends to all by repetition, or by a code of 32 data chunks and 0, 1, 4 "
        "or 8 parity chunks; with 0 parity is sent on request alone, for several ranks "
        "at once. Two ranks are a message. All hosts are on one switch, each loses "
        "datagrams on its link, control messages as well, and windows are twice "
        "bandwidth times round trip, or 1 MiB. A chunk has 1456 bytes at 1 Gbit/s and "
        "4096 at 100. Queues and buffers hold all that comes. Times are of whole "
        "operations, with their entry and release."
    ),
    (
        "Means are of 200 seeds for two ranks and 64 KiB, down to 8 for 16 MiB. Not "
        "simulated, for lack of time: larger sizes but in one table."
    ),
    (
        "The rule (`bench/study/rule.py`): S bytes go at a rate B to P receivers, each "
        "of which loses a datagram with the probability p. A round Q is the round trip "
        "R, the allowance for late chunks, which is R / 2 from 50 us to 1 ms, and 120 "
        "us. L are the chunks of the last Q, g are the groups of these, and a repair "
        "fails with f = 1 - (1 - p)^2, as the request may be lost, or the answer. "
        "Beyond its time without losses, repetition takes S / B * sum(1 - (1 - "
        "p^j)^P, j >= 1) + Q * sum(1 - (1 - p f^j)^(L P), j >= 0). A code with k data "
        "and m parity chunks takes S / B * (m / k + sum(1 - (1 - q(m + j))^P, j >= 0) "
        "/ k) + Q * sum(1 - (1 - q(m) f^j)^(g P), j >= 0), where q(i) is the "
        "probability that of k + m datagrams more than i are lost. The first part is "
        "what is sent, the second are the rounds of the unluckiest receiver. A single "
        "receiver repairs by repetition if m is 0."
    ),
    (
        "Two ranks gain nothing up to a loss of 1e-05, nor where a message takes many "
        "rounds: 16 MiB at 1 Gbit/s and 1 ms. At 25 ms and more, and a loss of 1e-02, "
        "parity makes them 1.2 to 2.2 times as fast. Of 188 ranks some rank lacks "
        "something at 1e-05 already: with one parity chunk 1 MiB at 25 ms takes them "
        "an eighth less at least. At long round trips higher losses gain them little "
        "more, since they wait for control messages of the entry and the release that "
        "were lost, too. At short ones they must not repeat: at 1e-02 and 10 us, 1 MiB "
        "takes 39 ms at 1 Gbit/s instead of 10, and "
        "ranks send more repairs than the simulator's law on costs allows. Parity on "
        "request is never slower than repetition by more than 1 % beyond two standard "
        "errors."
    ),
]


def chapter(results: Results, folder: Path) -> Chapter:
    """Return the chapter: the map, the rule beside it, and what was sent."""
    judged = [verdict(results, link) for link, _ in _grid() if link.loss_ppm]
    return Chapter(
        "Erasure codes or repetition",
        _TEXT,
        [
            _map(results),
            verdicts.summary(judged),
            verdicts.misses(judged),
            _large(results),
            _extras(results),
        ],
        [_picture(results, folder)],
    )


def _picture(results: Results, folder: Path) -> Picture:
    """Draw the times of the codes against the loss, and those that are expected."""
    panels = {}
    for nranks in NRANKS:
        lossless = Link(nranks, MIB, 1000, 25_000, 0)
        base_ns = mean_ns(results, lossless, REPEAT)
        links = [lossless._replace(loss_ppm=loss_ppm) for loss_ppm in LOSSES_PPM]
        panels[f"{nranks} ranks"] = {
            name: [
                (
                    mean_ns(results, link, name) / 1e6,
                    (base_ns + expected_ns(link, code)) / 1e6,
                )
                for link in links
            ]
            for name, code in CODES.items()
        }
    losses = [loss_ppm / _PPM for loss_ppm in LOSSES_PPM]
    return pictures.codes(panels, losses, folder)
