"""Where in a YAML file each field stands, and which keys stand twice."""

from dataclasses import dataclass

import yaml

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Lines:
    """Line number (from 1) of each field path; fields that stand twice."""

    of: dict[Path, int]
    duplicates: tuple[Path, ...]

    def nearest(self, path: Path) -> int:
        """Line of the path or of its nearest parent; 0 when there is none."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.of:
                return self.of[path[:end]]
        return 0


def read_lines(text: str) -> Lines:
    """Lines of every field of a YAML text. Raises yaml.YAMLError."""
    of: dict[Path, int] = {}
    duplicates: list[Path] = []
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is not None:
        _walk(root, (), of, duplicates)
    return Lines(of, tuple(duplicates))


def _walk(node: yaml.Node, path: Path, of: dict[Path, int], duplicates: list[Path]) -> None:
    of.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            below = (*path, str(key.value))
            if key.value in seen:
                duplicates.append(below)
            seen.add(key.value)
            of[below] = key.start_mark.line + 1
            _walk(value, below, of, duplicates)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            _walk(value, (*path, index), of, duplicates)
