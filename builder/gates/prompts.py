"""The gates' prompts and text: data files beside the code, or the user's own."""

import importlib.util
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.errors import RefusedError


@dataclass(frozen=True)
class Prompt:
    """One prompt of a kind (explain, summarise, code, extract, rewrite, chat, or the user's own words)."""

    id: str
    kind: str
    text: str


def gates_folder() -> Path:
    """`configs/gates` as it was installed, in a wheel as in a working copy."""
    spec = importlib.util.find_spec("configs")
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    places.append(str(Path(__file__).parents[2] / "configs"))
    return next((Path(p) / "gates" for p in places if (Path(p) / "gates").is_dir()), Path(places[-1]) / "gates")


def load_prompts(path: Path | None = None) -> tuple[Prompt, ...]:
    """Prompts of a JSON-lines file with the members id, kind and prompt. Raises RefusedError GATE-PROMPTS with file and line."""
    file = path or gates_folder() / "prompts.jsonl"
    prompts: list[Prompt] = []
    for number, line in enumerate(_read(file, "gates.prompts").splitlines(), 1):
        if line.strip():
            prompts.append(_prompt(line, file, number))
    ids = [p.id for p in prompts]
    twice = sorted({i for i in ids if ids.count(i) > 1})
    if not prompts or twice:
        raise _refused(file, 0, "no prompts" if not prompts else f"the id {twice[0]} twice")
    return tuple(prompts)


def load_text(path: Path | None = None) -> str:
    """Running text for the accuracy gate. Raises RefusedError GATE-PROMPTS."""
    file = path or gates_folder() / "text.txt"
    text = _read(file, "gates.text")
    if not text.strip():
        raise _refused(file, 0, "no text")
    return text


def spread_over_kinds(prompts: Sequence[Prompt], count: int) -> tuple[Prompt, ...]:
    """The first `count` prompts, taken in turn from each kind, so that a short run still sees all of them."""
    kinds: dict[str, list[Prompt]] = {}
    for prompt in prompts:
        kinds.setdefault(prompt.kind, []).append(prompt)
    depth = max((len(k) for k in kinds.values()), default=0)
    turns = [kind[i] for i in range(depth) for kind in kinds.values() if i < len(kind)]
    return tuple(turns[:count])


def windows(ids: Sequence[int], tokens: int, count: int) -> tuple[tuple[int, ...], ...]:
    """Up to `count` windows of exactly `tokens` ids, one after another, spread evenly over the text."""
    whole = len(ids) // tokens
    chosen = range(whole) if whole <= count else [i * whole // count for i in range(count)]
    return tuple(tuple(ids[i * tokens : (i + 1) * tokens]) for i in chosen)


def _read(file: Path, field: str) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise RefusedError("GATE-PROMPTS", f"{file} cannot be read: {error.strerror}", field=field, file=str(file)) from error


def _prompt(line: str, file: Path, number: int) -> Prompt:
    try:
        row = json.loads(line)
        prompt = Prompt(row["id"], row["kind"], row["prompt"])
    except (ValueError, KeyError, TypeError) as error:
        raise _refused(file, number, f"{type(error).__name__}: {error}") from error
    if not all(isinstance(v, str) and v for v in (prompt.id, prompt.kind, prompt.text)):
        raise _refused(file, number, "an empty member")
    return prompt


def _refused(file: Path, number: int, found: str) -> RefusedError:
    place = f"{file}:{number}" if number else str(file)
    needed = 'one object a line: {"id": ..., "kind": ..., "prompt": ...}, ids unique'
    return RefusedError("GATE-PROMPTS", f"{place}: {found}", field="gates.prompts", found=found, needed=needed, file=str(file))
