"""One request as text: the answer, lanes by banks and the conflict graph, or the sectors; and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, TextIO

from msgspec import Meta

from memsim.arch.units import BANKS, LINE, SECTOR
from memsim.counts import SiteCounts
from memsim.document import Count, Document, DocumentPart, Line, Texts
from memsim.launch import Natural
from memsim.pictures.worst_request import GlobalRequest, SharedRequest, conflict_graph
from memsim.views.canvas import colour_of_count
from memsim.views.explain.sentences import collision_line, lane_cells, line_name, sentences, word_name
from memsim.views.labels import access, at_all_places, count, dim3, lane_names, number, ranges
from memsim.views.screen import UNLIMITED, Screen, cell

if TYPE_CHECKING:
    from rich.text import Text

CELL = 2
MOST_LINES = 8  # of wavefronts, of collisions and of components of the graph
BYTES_A_MARK = (2, 4)  # the second where the first does not fit


def write(request: SharedRequest | GlobalRequest, stream: TextIO) -> None:
    """Prints the request."""
    screen = Screen(stream)
    origin, row = request.origin, request.origin.row
    answer, *story = sentences(request)
    screen.say(answer, "bold")
    screen.say(f"site {origin.site}: {row.file}:{row.line}: {access(row)} {row.array}".rstrip())
    screen.say_code(row.source, 4)
    screen.say()
    for sentence in story:
        screen.say(sentence)
    screen.say(_how_often(request))
    for reason in at_all_places(origin.uncertain):
        screen.say(f"Not certain: {reason}")
    screen.say()
    if isinstance(request, SharedRequest):
        _write_lanes(screen, request)
        _write_conflicts(screen, request)
    else:
        _write_sectors(screen, request)


def _how_often(request: SharedRequest | GlobalRequest) -> str:
    origin, made = request.origin, number(request.origin.row.requests, "?")
    if origin.distinct == 1:
        return f"All {made} requests of this access have this pattern."
    kinds = f"{origin.distinct:,} patterns"
    return f"The access makes {made} requests of {kinds}; this is the worst, of {origin.times:,} of them."


def _write_lanes(screen: Screen, request: SharedRequest) -> None:
    """A row for each lane, a cell for each bank with the number of the wavefront.

    Threads and groups are left out where there is no room: lines separate groups, too.
    """
    from rich.text import Text

    cells = {(one.row, one.bank): one for one in lane_cells(request)}
    threads = [dim3(thread) for thread in request.origin.threads]
    wide = max(len("thread"), *map(len, threads))

    def before(lane: int | str, thread: str) -> str:
        return f"{lane:>4}  {thread.ljust(wide)}  " if is_whole else f"{lane:>4} "

    def after(group: int | str, wavefront: int | str) -> str:
        return f"  {group:>5}  {wavefront:>9}" if is_whole else f" {wavefront:>9}"

    is_whole = screen.room > len("lane    ") + wide + BANKS * CELL + len("  group  wavefront")  # and a mark
    ticks = "".join(f"{'' if bank % 4 else bank:>{CELL}}" for bank in range(BANKS))
    screen.say(f"{before('lane', 'thread')}{ticks}{after('group', 'wavefront')}", "bold")
    for lane in range(BANKS):
        if lane and lane % request.lanes == 0:
            screen.say(f"{' ' * len(before(0, ''))}{'-' * BANKS * CELL}")
        line = Text(before(lane, threads[lane]))
        for bank in range(BANKS):
            one = cells.get((lane, bank))
            served_by = one.wavefront if one else 0
            line += cell(str(served_by or "."), colour_of_count(served_by), CELL)
        if request.active[lane]:
            mark = "!" * any(one.collides for (row, _), one in cells.items() if row == lane)
            line += Text(after(int(request.group[lane]), int(request.wavefront[lane])) + mark)
        else:
            line += Text("   idle")
        screen.say(line)
    screen.say()
    wavefronts = int(request.wavefront.max())
    for wavefront in range(1, min(wavefronts, MOST_LINES) + 1):
        served = [lane for lane in range(BANKS) if request.wavefront[lane] == wavefront]
        screen.say(f"wavefront {wavefront}: {lane_names(served)} (group {request.group[served[0]]})")
    if wavefronts > MOST_LINES:
        screen.say(f"and {wavefronts - MOST_LINES} more")
    if request.conflicts:
        screen.say("The order among colliding words was not measured; shown here by lowest lane.")
    screen.say()


def _write_conflicts(screen: Screen, request: SharedRequest) -> None:
    """The words that collide, and the conflict graph."""
    collisions = request.collisions()
    if not collisions and not request.read_together():
        screen.say("Conflict graph of the lanes: no edges; no two lanes conflict.")
        return
    if collisions:
        screen.say("Words that collide:")
        for meeting in collisions[:MOST_LINES]:
            screen.say(f"  group {meeting.group}, {collision_line(request.origin, meeting)}")
        if len(collisions) > MOST_LINES:
            screen.say(f"  and {len(collisions) - MOST_LINES} more")
        screen.say()
    for line in _graph(request):
        screen.say(line)


def _graph(request: SharedRequest) -> Iterator[str]:
    """The conflict graph, a line for each component that has edges."""
    import networkx as nx

    graph = conflict_graph(request)
    yield f"Conflict graph of the lanes: {count(graph.number_of_edges(), 'pair')} of lanes that conflict."
    components = [sorted(part) for part in nx.connected_components(graph) if len(part) > 1]
    for part in sorted(components)[:MOST_LINES]:
        edges: list[tuple[int, int, range]] = list(graph.subgraph(part).edges(data="banks"))
        banks = sorted({bank for _, _, of_edge in edges for bank in of_edge})
        pairs = f" ({len(edges)} pairs)" if len(edges) > 1 else ""
        yield f"  lanes {ranges(part)}: in bank{'s' * (len(banks) > 1)} {ranges(banks)}{pairs}"
    if len(components) > MOST_LINES:
        yield f"  and {len(components) - MOST_LINES} more"
    idle = [node for node in graph if graph.degree(node) == 0]
    if idle:
        yield f"  no conflict: {lane_names(idle)}"


def _write_sectors(screen: Screen, request: GlobalRequest) -> None:
    """A row for each 128-byte line: a mark for each two bytes, or four, and the lanes of each sector."""
    from rich.text import Text

    names = [line_name(request, line) for line in range(len(request.lines))]
    lanes = [
        " | ".join(
            ranges(request.lanes_of_sector(line, sector)) for sector, moved in enumerate(touched) if moved
        )
        for line, touched in enumerate(request.touched)
    ]
    wide = max(map(len, names))
    beside = wide + max(map(len, lanes)) + 2 * (LINE // SECTOR + 1)
    room = screen.columns or UNLIMITED
    fitting = (size for size in BYTES_A_MARK if beside + LINE // size <= room)
    size = next(fitting, BYTES_A_MARK[-1])
    unit = "bytes " if size == BYTES_A_MARK[0] else ""
    heading = "  ".join(
        f"{f'{unit}{start}-{start + SECTOR - 1}':{SECTOR // size}}" for start in range(0, LINE, SECTOR)
    )
    screen.say(Text(f"{'line'.ljust(wide)}  {heading}  lanes", "bold"))
    for line, name in enumerate(names):
        text = Text(f"{name.ljust(wide)}  ")
        for sector in range(request.touched.shape[1]):
            text += _sector(request, line, sector, size) + Text("  ")
        screen.say(text + Text(lanes[line]))
    screen.say(f"# used   - moved but unused   . not moved   ({size} bytes each)")


def _sector(request: GlobalRequest, line: int, sector: int, size: int) -> Text:
    from rich.text import Text

    inside = request.used[line, sector * SECTOR : (sector + 1) * SECTOR].reshape(-1, size)
    used = [bool(mark.any()) for mark in inside]
    if not request.touched[line, sector]:
        return Text("." * len(used), style="dim")
    waste = Text("")
    for mark in used:
        waste += cell("#", colour_of_count(4), 1) if mark else Text("-", style="red")
    return waste


Lanes = tuple[Natural, ...]


class ExplainedLane(DocumentPart, frozen=True, kw_only=True):
    """An active lane. address: the first byte that it accesses."""

    lane: Natural
    thread: tuple[Natural, Natural, Natural]
    address: int
    group: Annotated[Count, Meta(description="lanes that are served together, from 1; shared memory only")]
    wavefront: Annotated[Count, Meta(description="which one serves it, from 1; shared memory only")]


class ExplainedWords(DocumentPart, frozen=True, kw_only=True):
    """Words side by side, the lanes that want them, and the wavefront that serves these."""

    name: str
    first: Annotated[Natural, Meta(description="number of the first word of 4 bytes")]
    lanes: Lanes
    wavefront: Natural


class ExplainedCollision(DocumentPart, frozen=True, kw_only=True):
    """What meets in the same banks."""

    group: Natural
    banks: Lanes
    words: tuple[ExplainedWords, ...]


class ExplainedLine(DocumentPart, frozen=True, kw_only=True):
    """A line of 128 bytes that is touched."""

    name: str
    sectors: Annotated[tuple[Lanes, ...], Meta(description="the lanes that touch each of its four sectors")]
    bytes_used: Natural


class RequestDocument(Document, frozen=True, kw_only=True):
    """A request, lane by lane."""

    kernel: str
    answer: Line
    why: Texts
    site: Annotated[Natural, Meta(description="the number of its access in the analysis")]
    counts: Annotated[SiteCounts, Meta(description="what this access costs in the whole launch")]
    block: Annotated[tuple[Natural, Natural, Natural], Meta(description="which made it first")]
    warp: Natural
    times: Annotated[Natural, Meta(description="how often the launch makes a request like it")]
    distinct: Annotated[Natural, Meta(description="how many different requests the access makes")]
    wavefronts: Annotated[Count, Meta(description="of this request; shared memory only, as the next two")]
    conflicts: Count
    ways: Count
    sectors: Annotated[Count, Meta(description="of this request; global and local memory only, as the next")]
    ideal: Annotated[Natural, Meta(description="the fewest wavefronts or sectors for the same bytes")]
    lanes: tuple[ExplainedLane, ...]
    collisions: tuple[ExplainedCollision, ...]
    lines: tuple[ExplainedLine, ...]
    uncertain: Annotated[Texts, Meta(description="why the launch may make other requests")]


def request_document(kernel: str, request: SharedRequest | GlobalRequest) -> RequestDocument:
    """A request of a kernel as plain values."""
    origin, answer, *why = request.origin, *sentences(request)
    shared = request if isinstance(request, SharedRequest) else None
    costs = {name: getattr(request, name, None) for name in ("wavefronts", "conflicts", "ways", "sectors")}
    return RequestDocument.of(
        origin,
        kernel=kernel,
        answer=answer,
        why=tuple(why),
        counts=origin.row,
        **costs,
        ideal=request.ideal if isinstance(request, SharedRequest) else request.ideal_sectors,
        lanes=tuple(
            ExplainedLane(
                lane=lane,
                thread=origin.threads[lane],
                address=int(request.addresses[lane]),
                group=None if shared is None else int(shared.group[lane]),
                wavefront=None if shared is None else int(shared.wavefront[lane]),
            )
            for lane in range(len(request.active))
            if request.active[lane]
        ),
        collisions=() if shared is None else tuple(_collisions(shared)),
        lines=tuple(_lines(request)) if isinstance(request, GlobalRequest) else (),
    )


def _collisions(request: SharedRequest) -> Iterable[ExplainedCollision]:
    for meeting in request.collisions():
        words = (
            ExplainedWords.of(seat, name=word_name(request.origin, seat.words), first=seat.words.start)
            for seat in meeting.seats
        )
        yield ExplainedCollision.of(meeting, banks=tuple(meeting.banks), words=tuple(words))


def _lines(request: GlobalRequest) -> Iterable[ExplainedLine]:
    for line in range(len(request.lines)):
        sectors = (tuple(request.lanes_of_sector(line, sector)) for sector in range(LINE // SECTOR))
        yield ExplainedLine(
            name=line_name(request, line), sectors=tuple(sectors), bytes_used=int(request.used[line].sum())
        )
