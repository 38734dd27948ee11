"""Code that a checkpoint brings along; nothing of Tandem runs it."""

from collections.abc import Iterator, Mapping
from typing import Any


def tokenizer_modules(settings: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[str, ...]:
    """Files that the tokenizer's class is in, when it is no class of transformers' own; empty otherwise.

    transformers takes its own class where `tokenizer_class` names one, even if `auto_map` is there too.
    """
    classes = [*_classes(settings, "AutoTokenizer"), *_classes(config, "AutoTokenizer")]
    named = settings.get("tokenizer_class") or config.get("tokenizer_class")
    if named is not None and named not in {name.rpartition(".")[2] for name in classes}:
        return ()
    return _files(classes)


def model_modules(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Files with the model's own code that config.json names."""
    return _files([name for kind in config.get("auto_map") or {} if kind != "AutoTokenizer" for name in _classes(config, kind)])


def _classes(content: Mapping[str, Any], kind: str) -> Iterator[str]:
    auto_map = content.get("auto_map")
    value = auto_map.get(kind) if isinstance(auto_map, Mapping) else auto_map if kind == "AutoTokenizer" else None
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str):
            yield one


def _files(classes: list[str]) -> tuple[str, ...]:
    """`module.Class`, or `owner/name--module.Class` where the code lies in another repository."""
    files = [name.rpartition(".")[0].split(".")[0] if "--" not in name else _elsewhere(name) for name in classes]
    return tuple(sorted({f"{file}.py" for file in files if file}))


def _elsewhere(name: str) -> str:
    repository, _, path = name.partition("--")
    return f"{repository}: {path.rpartition('.')[0]}"
