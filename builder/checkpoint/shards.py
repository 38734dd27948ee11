"""The safetensors files of a folder: which there should be, which there are, and what their headers hold against the index."""

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from builder.checkpoint.safetensors import HeaderError, Tensor, read_header
from builder.checkpoint.values import parse_json
from builder.errors import Finding, RefusedError

INDEX = "model.safetensors.index.json"
WHOLE = "model.safetensors"
FILE_NAME = re.compile(r"[^/\\\0]{1,200}$")
NUMBERED = re.compile(r"(.*-)(\d+)(-of-)(\d+)\.safetensors$")
OTHER_FILES = ("consolidated", "adapter_model", "training_args")
"""Beginnings of safetensors files that are no part of the model as transformers loads it."""
READERS = 8
MOST_SHARDS = 10_000
"""No model has more; the count of a file's name is not believed beyond it."""
NAMED = 3
"""Most names that a message lists."""


@dataclass(frozen=True)
class Stored:
    """Tensors of all headers that could be read, each name once, and what is wrong; `whole` when nothing is missing or cut short."""

    tensors: tuple[Tensor, ...]
    findings: tuple[Finding, ...]
    whole: bool


def read_stored(folder: Path, field: str) -> Stored:
    """Read every header of a folder's model. Raises RefusedError CKPT-WEIGHTS when none can be read."""
    index = _read_index(folder, field)
    names = sorted(set(index.values())) if index else _unindexed(folder, field)
    absent = [name for name in names if not (folder / name).is_file()]
    spare = sorted(f.name for f in folder.glob("*.safetensors") if f.name not in names and not f.name.startswith(OTHER_FILES))
    present = [name for name in names if name not in absent]
    if absent and len(present) + len(spare) == 0:
        raise _refused(folder, field, *_absent_words(absent, len(names)))
    if absent and spare:
        moved, faults = _read_all(folder, present + spare, field)
        if index.keys() <= {t.name for t in moved}:
            return Stored(_once(moved), (*faults, _stale(absent, spare, field)), whole=not faults)
    tensors, faults = _read_all(folder, present, field)
    if not tensors:
        raise _refused(folder, field, faults[0].message if faults else f"{folder} holds no tensors", "nothing", "tensors")
    findings = [*faults, *_missing(absent, len(names), bool(index), field)]
    if index:
        findings += _against_index(index, tensors, {f.found for f in faults} | set(absent), field)
    return Stored(_once(tensors), tuple(findings), whole=not faults and not absent)


def _read_index(folder: Path, field: str) -> Mapping[str, str]:
    """Tensor name to file name; empty without an index."""
    file = folder / INDEX
    if not file.is_file():
        return {}
    try:
        return {name: _plain_name(shard) for name, shard in parse_json(file.read_bytes())["weight_map"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{file} is no index of shards: {error}"
        raise RefusedError("CKPT-WEIGHTS", message, field=field, found=str(error), needed="weight_map", file=str(file)) from None


def _plain_name(shard: object) -> str:
    if not isinstance(shard, str) or not FILE_NAME.match(shard):
        raise ValueError(f"{str(shard)[:80]!r} is no file's name")
    return shard


def _unindexed(folder: Path, field: str) -> list[str]:
    """Files of a folder without an index; a numbered file names its whole set. Raises RefusedError CKPT-WEIGHTS."""
    if (folder / WHOLE).is_file():
        return [WHOLE]
    files = sorted(f.name for f in folder.glob("*.safetensors") if not f.name.startswith(OTHER_FILES))
    numbered = next((found for found in map(NUMBERED.match, files) if found), None)
    if numbered is None:
        return files
    stem, digits, between, count = numbered.groups()
    if len(count) > len(str(MOST_SHARDS)) or int(count) > MOST_SHARDS:
        message = f"{numbered[0][:80]} names itself one of {count[:20]} shards, and no model has more than {MOST_SHARDS}."
        raise _refused(folder, field, message, f"{count[:20]} shards", f"<= {MOST_SHARDS} shards")
    return [f"{stem}{number:0{len(digits)}}{between}{count}.safetensors" for number in range(1, int(count) + 1)]


def _read_all(folder: Path, names: Sequence[str], field: str) -> tuple[list[Tensor], list[Finding]]:
    tensors: list[Tensor] = []
    faults: list[Finding] = []
    with ThreadPoolExecutor(min(READERS, len(names) or 1)) as pool:
        for name, (read, fault) in zip(names, pool.map(lambda name: _read_one(folder / name), names), strict=True):
            tensors += read
            if fault:
                message = f"{name}: {fault}."
                faults.append(Finding("CKPT-WEIGHTS", "error", message, field, name, "a whole file", f"fetch {name} again"))
    return tensors, faults


def _read_one(file: Path) -> tuple[tuple[Tensor, ...], str]:
    try:
        return read_header(file), ""
    except HeaderError as error:
        return error.tensors, str(error)


def _once(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    return tuple({tensor.name: tensor for tensor in tensors}.values())


def _absent_words(absent: Sequence[str], count: int) -> tuple[str, str, str]:
    """Message, what was found, what is needed."""
    verb = "is" if len(absent) == 1 else "are"
    message = f"{listed(absent)} {verb} not there: {count - len(absent)} of {count} shards are present. Was the download interrupted?"
    return message, f"{count - len(absent)} of {count} shards", listed(absent)


def _missing(absent: Sequence[str], count: int, indexed: bool, field: str) -> Iterator[Finding]:
    if absent:
        message, found, needed = _absent_words(absent, count)
        source = INDEX if indexed else "the name of the other shards"
        yield Finding("CKPT-SHARD-MISSING", "error", f"By {source}, {message}", field, found, needed, f"fetch {listed(absent)} again")


def _stale(absent: Sequence[str], spare: Sequence[str], field: str) -> Finding:
    message = (
        f"{INDEX} is stale: it names {listed(absent)}, while every tensor it lists stands in files of other names ({listed(spare)}). "
        "A loader follows the index and finds nothing."
    )
    fix = f"fetch {INDEX} of the revision that the shards are from, or save the model again"
    return Finding("CKPT-INDEX-STALE", "error", message, field, listed(spare), listed(absent), fix)


def _against_index(index: Mapping[str, str], tensors: Sequence[Tensor], unread: set[str], field: str) -> Iterator[Finding]:
    """Both ways, for the files whose headers could be read."""
    held = {(t.name, t.file.name if t.file else "") for t in tensors}
    lacking = [(name, shard) for name, shard in index.items() if shard not in unread and (name, shard) not in held]
    if lacking:
        name, shard = lacking[0]
        message = (
            f"By {INDEX}, {len(lacking)} of {len(index)} tensors stand in shards whose headers lack them; the first is {name} in {shard}."
        )
        fix = f"fetch {shard} and {INDEX} again, both of one revision"
        yield Finding("CKPT-INDEX-TENSOR", "error", message, field, f"{len(lacking)} tensors not found", f"{name} in {shard}", fix)
    unknown = sorted((shard, name) for name, shard in held if index.get(name) != shard)
    if unknown:
        shard, name = unknown[0]
        message = f"The shards hold {len(unknown)} tensors that {INDEX} does not place there; the first is {name} in {shard}."
        fix = f"fetch {INDEX} of the same revision; a loader that follows the index leaves these tensors out"
        yield Finding("CKPT-INDEX-UNKNOWN", "warning", message, field, f"{name} in {shard}", "a tensor of the index", fix)


def _refused(folder: Path, field: str, message: str, found: str, needed: str) -> RefusedError:
    if not found or found == "nothing":
        found = ", ".join(sorted(p.name for p in folder.iterdir())[:8]) or "nothing"
    fix = "fetch the model again, or save it with safe_serialization"
    return RefusedError("CKPT-WEIGHTS", message, field=field, found=found, needed=needed, fix=fix, file=str(folder))


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    rest = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {rest} more" if rest > 0 else "")
