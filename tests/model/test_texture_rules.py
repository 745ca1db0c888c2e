"""Texture fetches of one warp on an H200 (`textures.npz`): the rules give every count that they claim."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from memsim.arch import SM_90
from memsim.argument_types import ArrayArg, Texture
from memsim.errors import MemsimError
from memsim.isa.texel_values import fetch_texels
from memsim.isa.texture import (
    Touched,
    access_of_texture,
    has_measured_values,
    texels_at_coordinates,
    texels_of_numbers,
)
from memsim.model.operations import operation
from memsim.model.texture_fetches import texture_access, texture_limits
from tests.validate.conftest import H200, TRACES

with np.load(TRACES / H200 / "textures.npz") as file:
    FILE = {name: file[name] for name in file if not name.startswith("surface")}
FIELDS = [str(name) for name in FILE["texture_fields"]]
METRICS = [str(name) for name in FILE["metrics"]]
ACTIVE = FILE["active"][:, None] >> np.arange(32, dtype=np.uint32) & 1 > 0
DIMENSIONS = (1, 1, 2, 2, 3, 2, 2)
LINEAR, PITCHED, LAYERED = 0, 3, 5
ADDRESSES = ("wrap", "clamp", "mirror", "border")
TYPES = {(8, 0): "uint8", (16, 0): "uint16", (16, 2): "float16", (32, 2): "float32"}
#: What SASS makes of the kernels: opcode and shape.
FETCHES = {
    "fetch1": ("TLD", "1D"),
    "tex1": ("TEX", "2D"),
    "tex2": ("TEX", "2D"),
    "tex3": ("TEX", "3D"),
    "layered": ("TEX", "ARRAY_2D"),
    "lod2": ("TEX", "2D"),
    "grad2": ("TXD", "2D"),
    "gather": ("TLD4", "2D"),
}


def column(name: str) -> np.ndarray:
    """The counts of a metric."""
    return FILE["counts"][:, METRICS.index(name)].astype(np.int64)


REQUESTS = column("l1tex__t_requests_pipe_tex_mem_texture.sum")
SECTORS = column("l1tex__t_sectors_pipe_tex_mem_texture.sum")
TAGS = column("l1tex__t_set_accesses_pipe_tex_mem_texture.sum")


class Launches(NamedTuple):
    """Patterns that one kernel fetched from one texture: their rows of the file."""

    rows: np.ndarray
    texture: Texture
    op: str
    touched: Touched


def texture_of(number: int) -> Texture:
    one = dict(zip(FIELDS, FILE["textures"][number].tolist()))
    kind, channels = one["kind"], one["channels"]
    dimensions = DIMENSIONS[kind]
    shape = [one["depth"], one["height"], one["width"]][3 - dimensions :]
    shape = [one["depth"]] * (kind == LAYERED) + shape + [channels] * (channels > 1)
    return Texture(
        ArrayArg(tuple(shape), TYPES[one["bits"], one["format"]]),
        dimensions,
        memory="linear" if kind in (LINEAR, PITCHED) else "array",
        filter="linear" if one["linear"] else "point",
        address=ADDRESSES[one["address"]],
        normalized=bool(one["normalized"]),
        layered=kind == LAYERED,
        integers="normalized" if one["normalized_read"] else "integers",
    )


def launches() -> Iterator[Launches]:
    kernels = np.char.replace(FILE["kernel"], "_", " ")
    pairs = np.char.add(kernels, np.char.mod(" %d", FILE["texture"]))
    for pair in np.unique(pairs):
        rows = np.flatnonzero(pairs == pair)
        kernel, channels, number = pair.split()
        texture = texture_of(int(number))
        opcode, shape = FETCHES[kernel]
        op = access_of_texture(opcode, shape, texture, int(channels))
        assert op is not None
        x = FILE["x"][rows]
        if op == "fetch":
            touched = texels_of_numbers(texture, x.view(np.int32).astype(np.int64))
        else:
            at = [x.view(np.float32), FILE["y"][rows], FILE["z"][rows]][: texture.dimensions]
            touched = texels_at_coordinates(texture, at, FILE["w"][rows].astype(np.int64), opcode == "TLD4")
        yield Launches(rows, texture, op, touched)


ALL = list(launches())
MODELLED = [one for one in ALL if not operation("texture", one.op).why]


def test_every_recorded_fetch_asks_for_what_the_rules_say() -> None:
    """Of those random ones that were held out, too; and the doubtful ones are few."""
    judged, held_out, doubtful = 0, 0, 0
    for rows, texture, op, touched in MODELLED:
        sure = ~(touched.doubtful & ACTIVE[rows]).any(1)
        places = touched.places * texture.width if op == "fetch" else touched.places
        cost = texture_access(places, texture.width, op, ACTIVE[rows] & touched.inside)
        made = FILE["times"][rows].astype(np.int64) * FILE["warps"][rows]
        kept = rows[sure]
        assert np.array_equal((made * cost.requests)[sure], REQUESTS[kept])
        assert np.array_equal((made * cost.sectors)[sure], SECTORS[kept])
        assert np.array_equal((made * cost.tags)[sure], TAGS[kept])
        assert (cost.ideal_sectors <= cost.sectors).all()
        judged += len(kept)
        held_out += np.count_nonzero(FILE["held_out"][kept])
        doubtful += len(rows) - len(kept)
    assert (judged, held_out, doubtful) == (15_112, 4_214, 17)


def test_each_operation_was_recorded_at_the_widths_that_it_claims() -> None:
    found: dict[str, set[int]] = {}
    for one in MODELLED:
        found.setdefault(one.op, set()).add(one.texture.width)
    assert {op: tuple(sorted(widths)) for op, widths in found.items()} == {
        op: tuple(SM_90.widths("texture", op)) for op in SM_90.ops("texture")
    }


def test_unfiltered_fetches_return_the_texels_that_they_touch() -> None:
    """A texture of one float32 channel holds its texels' numbers."""
    checked = 0
    for rows, texture, op, touched in MODELLED:
        if op not in ("fetch", "point", "point_pitched") or texture.array.dtype != "float32":
            continue
        if texture.channels > 1 or texture.address == "border":
            continue
        kept = ACTIVE[rows] & touched.inside & ~touched.doubtful
        number = touched.places if op == "fetch" else numbers(texture, touched.places)
        assert np.array_equal(FILE["value"][rows][kept], number[kept])
        checked += np.count_nonzero(kept)
    assert checked > 60_000


def contents(texture: Texture) -> np.ndarray:
    """What the textures held, as the program of the recording (`source`) wrote it."""
    width, height, depth = (*texture.size, 1, 1)[:3]
    z, y, x = np.mgrid[: texture.layers if texture.layered else depth, :height, :width]
    number = (x + width * (y + height * z)).astype(np.uint32)
    mixed = number * np.uint32(2654435761)
    mixed ^= mixed >> np.uint32(15)
    mixed *= np.uint32(2246822519)
    mixed = (mixed ^ mixed >> np.uint32(13)) & np.uint32(1023)
    plain = number if texture.element == np.float32 else mixed
    channels = [plain] if texture.channels == 1 else [x, y, z, mixed][: texture.channels]
    return np.stack(channels, -1).astype(texture.element).reshape(texture.array.shape)


def test_filtered_fetches_return_the_texels_weighted() -> None:
    """Of one and two dimensions equal, but where the chip rounds a product of a coordinate and a size that is
    no power of two otherwise; of three the weights are rounded in a way that is not known.
    """
    checked = held_out = equal = volumes = turned = 0
    for rows, texture, op, touched in ALL:
        if not op.startswith("filtered"):
            continue
        known = replace(texture, array=contents(texture), border=(-7.0, -8.0, -9.0, -10.0))
        at = [FILE["x"][rows].view(np.float32), FILE["y"][rows], FILE["z"][rows]][: texture.dimensions]
        found, sure = fetch_texels(known, at, FILE["w"][rows].astype(np.int64), None)
        kept = ACTIVE[rows] & ~(touched.doubtful & touched.inside)
        value, chip = found[..., 0][kept], FILE["value"][rows][kept]
        assert sure.all()
        if has_measured_values(texture):
            differ = np.count_nonzero(value != chip)
            assert not differ or (texture.normalized and any(size & (size - 1) for size in texture.size))
            turned += differ
            checked += len(value)
            held_out += np.count_nonzero(kept[FILE["held_out"][rows]])
        else:
            spread = float(np.ptp(known.texels[:, 0]))
            assert np.abs(value - chip).max() < spread / 30
            volumes += len(value)
            equal += np.count_nonzero(value == chip)
    assert (checked, held_out, turned, volumes, equal) == (106_396, 32_865, 3, 20_830, 17_951)


def numbers(texture: Texture, places: np.ndarray) -> np.ndarray:
    x, y, z = places & (1 << 18) - 1, places >> 18 & (1 << 17) - 1, places >> 35 & (1 << 16) - 1
    width, height = (*texture.size, 1)[:2]
    return x + width * (y + height * z)


def test_what_is_served_in_pairs_lies_within_its_limits() -> None:
    """And equals them where it makes no difference which two lanes are served together."""
    judged, exact = 0, 0
    for rows, texture, op, touched in ALL:
        if operation("texture", op).pairs:
            sure = ~(touched.doubtful & ACTIVE[rows]).any(1)
            found = texture_limits(touched.places, texture.width, op, ACTIVE[rows] & touched.inside)
            assert np.array_equal(found.requests[sure], REQUESTS[rows][sure])
            for least, most, chip in (
                (found.fewest_sectors, found.most_sectors, SECTORS[rows]),
                (found.fewest_tags, found.most_tags, TAGS[rows]),
            ):
                assert ((least <= chip) & (chip <= most))[sure].all()
            assert (found.ideal_sectors <= found.fewest_sectors).all()
            judged += np.count_nonzero(sure)
            same = found.fewest_sectors == found.most_sectors
            exact += np.count_nonzero(same & (found.fewest_tags == found.most_tags))
    assert (judged, exact) == (1_688, 974)


def test_what_was_not_measured_has_no_rule() -> None:
    rest = {
        one.op for one in ALL if operation("texture", one.op).why and not operation("texture", one.op).pairs
    }
    assert rest == {"filtered_other"}
    for op in ("filtered_wide", "filtered_other"):
        with pytest.raises(MemsimError, match="not modelled"):
            texture_access(np.zeros(32, np.int64), 16, op)


def test_a_quad_asks_once_for_a_sector_and_eight_lanes_do_in_linear_memory() -> None:
    lanes = np.arange(32)
    assert int(texture_access(lanes * 4, 4, "fetch").requests) == 4
    assert int(texture_access(lanes * 16, 16, "fetch").requests) == 8
    same = texture_access(np.zeros(32, np.int64), 4, "point")
    assert [int(one) for one in (same.requests, same.sectors, same.tags, same.ideal_sectors)] == [8] * 4
    none = texture_access(np.zeros(32, np.int64), 4, "point", np.zeros(32, np.bool_))
    assert int(none.requests) == int(none.sectors) == 0
