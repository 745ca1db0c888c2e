"""Completes what a user says of a CUDA file's launch from the file's own launch, or says what is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

from memsim.errors import MemsimError
from memsim.source.expressions import Number
from memsim.source.kernels import kernels
from memsim.targets.offers import (
    Offer,
    Said,
    Spell,
    Word,
    command_line,
    every_launch,
    generic_name,
    instance_of,
    offer_of,
    offers,
)


def complete_launch(file: str, text: str, said: Said, spell: Spell = str, verb: str = "analyze") -> Said:
    """The launch options, completed with kernel, grid, block, shared bytes and arguments of the source's
    launch.

    Arguments only if all their values are known and the user passed none. `let` has values of names that the
    source leaves open. verb: of the command lines in hints.

    Raises:
        MemsimError: everything that is still missing, with a command line to start from, or a name that the
            source does not leave open.
    """
    said = dict(said)
    values: dict[str, Number] = said.pop("let", None) or {}
    _check_names(file, text, values, spell)
    given, offer, missing = _filled_in(file, text, said, values, spell, verb)
    for name, value in values.items():
        others = {other: one for other, one in values.items() if other != name}
        variants = (others, {**values, name: 2 * value + 1})
        if all(_says_the_same(file, text, said, one, (given, missing), spell) for one in variants):
            raise MemsimError(
                f"{spell('let')} {name}: it decides nothing about this launch",
                file=file,
                hint=f"remove it; {', '.join(others) or 'no name'} is enough" if not missing else "remove it",
            )
    if offer is not None and missing:
        raise _lacking(file, offer, given, missing, values, verb)
    return given


def complete_launches(
    file: str, text: str, said: Said, spell: Spell = str, verb: str = "analyze"
) -> list[tuple[Offer, Said | MemsimError]]:
    """As `complete_launch`, each different launch that the source makes, or what is missing of it.

    Raises:
        MemsimError: a value is given for a name that the source does not leave open.
    """
    said = dict(said)
    values: dict[str, Number] = said.pop("let", None) or {}
    _check_names(file, text, values, spell)
    wanted = said.get("kernel")
    wanted = None if wanted is None else instance_of(text, wanted, values)
    found: dict[tuple[str, ...], tuple[Offer, Said | MemsimError]] = {}
    for offer in every_launch(text, values):
        if offer.launch is None or not _means(offer, wanted):
            continue
        name = {} if offer.alone or _is_open(offer) else {"kernel": offer.name}
        given, missing = _filled(offer, {**said, **name}, values, spell)
        error = _lacking(file, offer, given, missing, values, verb) if missing else None
        found.setdefault(offer.command, (offer, error or given))
    return [*found.values()]


def _lacking(
    file: str, offer: Offer, given: Said, missing: Sequence[str], values: Mapping[str, Number], verb: str
) -> MemsimError:
    """What a launch still needs, with a command line to start from."""
    known = {key: given[key] for key in offer.shape if given.get(key) is not None}
    sizes = {key: value if isinstance(value, Sequence) else (value,) for key, value in known.items()}
    words = {key: Word(",".join(map(str, size))) for key, size in sizes.items()}
    with_shape = replace(offer, shape={**offer.shape, **words})
    return MemsimError(
        f"{offer.kernel.signature} needs {', '.join(missing)}",
        file=offer.kernel.file or file,
        line=offer.kernel.line,
        hint=command_line(file, with_shape, verb, values, given.get("options") or ()),
    )


def _says_the_same(
    file: str, text: str, said: Said, values: Mapping[str, Number], found: object, spell: Spell
) -> bool:
    """Whether other values of names lead to the same options, of which the same are missing."""
    try:
        given, _, missing = _filled_in(file, text, said, values, spell, "")
    except MemsimError:
        return False
    return (given, missing) == found


def _filled_in(
    file: str, text: str, said: Said, values: Mapping[str, Number], spell: Spell, verb: str
) -> tuple[Said, Offer | None, list[str]]:
    """(the launch options, the offer of the source that they are from, what they still lack)."""
    known = offers(text, values)
    wanted = said.get("kernel")
    if wanted is not None:
        wanted = instance_of(text, wanted, values)
        said = {**said, "kernel": wanted}
    chosen = [offer for offer in known if _means(offer, wanted)]
    if not chosen and wanted is not None and "<" in wanted:  # an instance not launched in the source
        chosen = [
            offer_of(text, kernel, wanted, None, values)
            for kernel in kernels(text)
            if kernel.template and wanted.partition("<")[0].strip() in (kernel.name, kernel.plain)
        ]
    if wanted is not None and "<" in wanted:  # the user names the instance that the launch leaves open
        chosen = [
            offer_of(text, one.kernel, wanted, one.launch, values) if _is_open(one) else one for one in chosen
        ]
    if len(chosen) != 1:
        if said.get("grid") is not None and said.get("block") is not None:
            return dict(said), None, []  # the code tells which kernels there are
        raise _undecided(file, chosen or known, said, spell, verb)
    given, missing = _filled(chosen[0], said, values, spell)
    return given, chosen[0], missing


def _filled(offer: Offer, said: Said, values: Mapping[str, Number], spell: Spell) -> tuple[Said, list[str]]:
    """(the launch options, what they still lack)."""
    given = dict(said)
    if (
        given.get("kernel") is None
        and "<" in offer.name
        and "..." not in offer.name
        and offer.kernel.template
        and not _is_open(offer)
    ):
        given["kernel"] = offer.name
    launch = offer.launch
    if launch is not None:
        for key, sizes in (("grid", launch.grid), ("block", launch.block)):
            numbers = tuple(size.value for size in sizes)
            if given.get(key) is None and numbers and None not in numbers:
                given[key] = numbers
        if given.get("shared_bytes") is None and launch.shared is not None and launch.shared.value:
            given["shared_bytes"] = launch.shared.value
    if given.get("args") is None and (launch or values) and not any(word.asked for word in offer.arguments):
        given["args"] = [word.text for word in offer.arguments]
    return given, list(_missing(offer, given, spell))


def _missing(offer: Offer, given: Said, spell: Spell) -> Iterator[str]:
    """The options that a launch still needs."""
    names: list[str] = []
    for key, word in offer.shape.items():
        if given.get(key) is None:
            names += () if word.by_hand else word.asked
            yield from [spell(key)] if word.by_hand else ()
    arguments = given.get("args")
    if arguments is None and offer.is_by_name:
        names += [name for word in offer.arguments for name in word.asked]
    else:
        absent = offer.kernel.parameters[len(arguments or ()) :]
        yield from (f"{spell('args')} for {parameter}" for parameter in absent)
    yield from (f"{spell('let')} {name}" for name in dict.fromkeys(names))


def _means(offer: Offer, wanted: str | None) -> bool:
    """Does the user mean this kernel?"""
    if wanted is None:
        return True
    squeezed = re.sub(r"\s", "", wanted)
    plain = offer.kernel.plain
    names = (offer.name, offer.kernel.name, plain + offer.name.removeprefix(offer.kernel.name))
    if squeezed in (re.sub(r"\s", "", name) for name in names) or squeezed == plain:
        return True
    return squeezed.startswith(f"{plain}<") and "<" in offer.name and _is_open(offer)


def _is_open(offer: Offer) -> bool:
    """Is it a template without an instance in the source?"""
    return bool(offer.kernel.template) and offer.name == generic_name(offer.kernel)


def _undecided(file: str, known: Sequence[Offer], said: Said, spell: Spell, verb: str) -> MemsimError:
    wanted = said.get("kernel")
    if not known:
        return MemsimError(
            f"{file} needs {spell('grid')} and {spell('block')}",
            hint="its text contains no kernel: a macro may define them, or a header",
        )
    if wanted is not None and all(_means(offer, wanted) for offer in known):
        about = f"it launches {len(known)} instances of {wanted}; choose one"
    elif wanted is not None:
        near = get_close_matches(wanted, [offer.name for offer in known])
        known = [offer for offer in known if offer.name in near] or known
        about = f"it has no kernel {wanted}"
    else:
        missing = [spell(key) for key in ("kernel", "grid", "block") if said.get(key) is None]
        about = f"it has {len(known)} kernels; choose one by {', '.join(missing)}"
    options = said.get("options") or ()
    lines = (command_line(file, offer, verb, options=options) for offer in known)
    return MemsimError(about, file=file, hint="\n".join(lines))


def _check_names(file: str, text: str, values: Mapping[str, Number], spell: Spell) -> None:
    """Raise a MemsimError if a value is given for what no kernel or launch of the source uses."""
    if not values:
        return
    plain = offers(text)
    asked = [name for offer in plain for name in offer.asked]
    scopes = [offer.launch.scope for offer in plain if offer.launch is not None]
    known = {*asked, *(name for scope in scopes for name in (*scope.constants, *scope.initialized))}
    for name in values:
        if name not in known:
            names = ", ".join(dict.fromkeys(asked)) or "none"
            raise MemsimError(
                f"{spell('let')} {name}: no launch in the source uses it",
                file=file,
                hint=f"names without a value: {names}",
            )
