"""Chip names as people write them (`H100-SXM5-80GB`, `NVIDIA L40S`), against the names of the table."""

import difflib
import re
from collections.abc import Sequence

MAKERS = ("nvidia", "geforce", "tesla")
_WORD = re.compile(r"[a-z0-9]+")
_SIZE = re.compile(r"\d+g(?:i?b)?")
_MODEL = re.compile(r"[a-z]{1,2}\d+[a-z]*")


def near_names(name: str, known: Sequence[str]) -> list[str]:
    """Known names that `name` may stand for: the same but for case and separators, else of the same model, else begun by it, else alike.

    A word that is a model of its own (v100, h20) is never turned into another model for being spelt alike.
    """
    words = [word for word in _WORD.findall(name.lower()) if word not in MAKERS]
    joined = "".join(words)
    same = [other for other in known if other.replace("_", "") == joined]
    if same or not words:
        return same
    found = _of_model(words, known) or [other for other in known if _begins(joined, other.replace("_", ""))]
    if found or _MODEL.fullmatch(words[0]):
        return found
    return difflib.get_close_matches("_".join(words), known, n=1, cutoff=0.6)


def _of_model(words: Sequence[str], known: Sequence[str]) -> list[str]:
    """Names of the model that the words begin with: the one that all its words, or all given ones, speak for, else all of them."""
    models = [model for model in {other.split("_")[0] for other in known} if _begins(model, words[0])]
    if not models:
        return [other for other in known if words[0] in other.split("_")]
    model = max(models, key=len)
    rest = [*_WORD.findall(words[0].removeprefix(model)), *words[1:]]
    family = _of_size(rest, [other for other in known if other.split("_")[0] == model])
    fitting = [other for other in family if _fits(rest, other.split("_")[1:])]
    most = max((_shared(rest, other.split("_")[1:]) for other in fitting), default=0)
    return [other for other in fitting if _shared(rest, other.split("_")[1:]) == most] or family


def _begins(beginning: str, whole: str) -> bool:
    """Whether one text begins the other without cutting a number."""
    rest = whole.removeprefix(beginning)
    return whole.startswith(beginning) and not (beginning[-1:].isdigit() and rest[:1].isdigit())


def _fits(given: Sequence[str], own: Sequence[str]) -> bool:
    """Whether all words of a name were given, or all given words are the name's; with none given nothing is said."""
    shared = _shared(given, own)
    return bool(given) and (shared == len(own) or shared == len(given))


def _shared(given: Sequence[str], own: Sequence[str]) -> int:
    """Words of a name that were given; sxm5 is sxm."""
    return sum(any(word.startswith(mine) for word in given) for mine in own)


def _of_size(given: Sequence[str], names: Sequence[str]) -> list[str]:
    """Where a size is given, the names with that size, or else those that tell none."""
    sizes = {word for word in given if _SIZE.fullmatch(word)}
    own = {name: {word for word in name.split("_") if _SIZE.fullmatch(word)} for name in names}
    if not sizes:
        return list(names)
    return [name for name in names if own[name] & sizes] or [name for name in names if not own[name]]
