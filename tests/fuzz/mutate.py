"""Damaged inputs: a good one, and what bad luck or bad will makes of it. The same seed makes the same."""

from __future__ import annotations

import re
from random import Random
from typing import Any

NUMBERS = (
    *(0, -1, 1, 2, 7, 31, 32, 33, 255),
    *(2**16, 2**31 - 1, 2**31, 2**32, 2**53, 2**63, 2**64, 10**30, 10**5000),
)
TEXTS = (
    *("", " ", "\0", "\x1b[2J", "\u202e", "\ud800", "é", "\n"),
    *("a" * 5000, "../..", "%s%n", "$(x)", "[" * 3000),
)
_NUMBER = re.compile(rb"\d+")
_WORD = re.compile(rb"[\w.$%@]+")


def bytes_of(good: bytes, random: Random) -> bytes:
    """Bytes with some of them changed, left out, doubled or moved."""
    data = bytearray(good)
    for _ in range(random.choice((1, 1, 1, 2, 4, 16))):
        if not data:
            break
        at, length = random.randrange(len(data)), random.choice((1, 1, 2, 4, 8, 64, 1000))
        match random.randrange(5):
            case 0:
                data[at] = random.randrange(256)
            case 1:
                del data[at : at + length]
            case 2:
                data[at:at] = data[at : at + length]
            case 3:
                data[at : at + length] = random.randbytes(min(length, len(data) - at))
            case _:
                to = random.randrange(len(data))
                piece = data[at : at + length]
                data[to : to + len(piece)] = piece
    return bytes(data[: 2 * len(good) + 1000])


def text_of(good: bytes, random: Random) -> bytes:
    """Text with lines, words and numbers changed, left out, doubled or exchanged; or bytes."""
    if random.random() < 0.15:
        return bytes_of(good, random)
    data = good
    for _ in range(random.choice((1, 1, 2, 3, 8))):
        lines = data.split(b"\n")
        match random.randrange(6):
            case 0:
                data = _replaced(data, _NUMBER, random, number_like(random))
            case 1:
                word = random.choice(_WORD.findall(data) or [b""])
                data = _replaced(data, _WORD, random, word)
            case 2:
                del lines[random.randrange(len(lines))]
                data = b"\n".join(lines)
            case 3:
                lines.insert(random.randrange(len(lines)), random.choice(lines))
                data = b"\n".join(lines)
            case 4:
                data = _replaced(data, _WORD, random, _text(random))
            case _:
                a, b = random.randrange(len(lines)), random.randrange(len(lines))
                lines[a], lines[b] = lines[b], lines[a]
                data = b"\n".join(lines)
    return data


def number_like(random: Random) -> bytes:
    """A number that something may stumble over."""
    if random.random() < 0.02:
        return b"9" * 5000
    return str(random.choice(NUMBERS[:-1])).encode()


def _text(random: Random) -> bytes:
    return random.choice(TEXTS).encode("utf-8", "surrogatepass")


def _replaced(data: bytes, pattern: re.Pattern[bytes], random: Random, by: bytes) -> bytes:
    found = list(pattern.finditer(data))
    if not found:
        return data
    one = random.choice(found)
    return data[: one.start()] + by + data[one.end() :]


def value_of(good: Any, random: Random) -> Any:
    """A document of dicts, lists and plain values with one value of it another, or left out, or nested."""
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in list(items):
            places.append((value, key))
            if isinstance(item, (dict, list)):
                walk(item)

    if not isinstance(good, (dict, list)) or not good:
        return any_value(random)
    walk(good)
    for _ in range(random.choice((1, 1, 2, 3))):
        container, key = random.choice(places)
        if isinstance(container, list) and key >= len(container):
            continue
        match random.randrange(5):
            case 0 if isinstance(container, dict):
                container.pop(key, None)
            case 1 if isinstance(container, list):
                container.append(any_value(random))
            case 2 if isinstance(container, dict):
                container[random.choice(TEXTS)] = any_value(random)
            case _:
                container[key] = any_value(random)
    return good


def any_value(random: Random) -> Any:
    """A value of any kind."""
    deep: Any = []
    for _ in range(random.choice((1, 3, 500, 5000)) if random.random() < 0.1 else 0):
        deep = [deep]
    return random.choice(
        (None, True, False, 0.5, float("inf"), float("nan"), {}, {"a": 1}, deep, *NUMBERS, *TEXTS)
    )
