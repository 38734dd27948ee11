"""Install every peer below this folder, and make its models of a pair: `install.py PAIR_FILE [NAME...]`, called by `make bench-peers`.

What is there for the same requirements and the same checkpoints is kept. A peer that fails does not stop the others; the exit code says so.
"""

import json
import os
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from builder.bench.peers import SCRIPT, SOURCE_FILE, PeerPlace
from builder.checkpoint import ModelAccess, digest_folder, fetch_checkpoint, locate_checkpoint
from builder.spec import Pair, load_pair

if TYPE_CHECKING:
    from builder.api import Role

HERE = Path(__file__).parent
MODELS = Path("build") / "peers"
STAMP = "installed.txt"
LOG = "prepare.log"
REQUIREMENTS = (("requirements.txt", ()), ("requirements-no-deps.txt", ("--no-deps",)))


def main(arguments: list[str]) -> int:
    pair, names = load_pair(Path(arguments[0])), arguments[1:]
    checkpoints = checkpoints_of(pair)
    failed = [place.name for place in places() if (not names or place.name in names) and not done(place, checkpoints)]
    print(f"failed: {', '.join(failed)}" if failed else "all peers are there")
    return 1 if failed else 0


def checkpoints_of(pair: Pair) -> dict[str, Path]:
    """Folders with all weights, by role."""
    texts: dict[Role, str | None] = {"target": pair.spec.target.checkpoint, "draft": pair.spec.draft.checkpoint}
    found = {role: locate_checkpoint(text, pair.file.parent, role, ModelAccess()) for role, text in texts.items() if text}
    return {role: fetch_checkpoint(folder, role, ModelAccess()) for role, folder in found.items()}


def places() -> list[PeerPlace]:
    """Every peer below this folder."""
    return [PeerPlace(file.parent.name, file.parent, (MODELS / file.parent.name).resolve()) for file in sorted(HERE.glob(f"*/{SCRIPT}"))]


def done(place: PeerPlace, checkpoints: Mapping[str, Path]) -> bool:
    """Whether the peer is there now."""
    try:
        install(place)
        make_models(place, checkpoints)
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"{place.name}: {error}; what it said is above, or in {place.models / LOG}", file=sys.stderr)
        return False
    return True


def install(place: PeerPlace) -> None:
    """The peer's environment, for its requirements as they are now."""
    files = [(place.folder / name, options) for name, options in REQUIREMENTS if (place.folder / name).is_file()]
    wanted, stamp = "".join(file.read_text(encoding="utf-8") for file, _ in files), place.folder / ".venv" / STAMP
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return
    print(f"{place.name}: installing")
    venv.create(place.folder / ".venv", with_pip=True, clear=True)
    for file, options in files:
        command = [str(place.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *options, "-r", str(file)]
        subprocess.run(command, check=True, env={**os.environ, **build_environment(place.folder)})
    stamp.write_text(wanted, encoding="utf-8")


def build_environment(folder: Path) -> dict[str, str]:
    """NAME=VALUE lines of `build.env`: how packages without a wheel are compiled."""
    file = folder / "build.env"
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return dict(line.split("=", 1) for line in lines if line)


def make_models(place: PeerPlace, checkpoints: Mapping[str, Path]) -> None:
    """The peer's models, where it cannot read the checkpoints itself."""
    source = json.dumps({role: digest_folder(path, MODELS.parent / ".digests.json") for role, path in checkpoints.items()}) + "\n"
    stamp = place.models / SOURCE_FILE
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == source:
        return
    print(f"{place.name}: making models")
    place.models.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    script = place.folder / "prepare.py"
    if script.is_file():
        paths = [str(checkpoints.get(role, "")) for role in ("target", "draft")]
        with (place.models / LOG).open("w", encoding="utf-8") as log:
            command = [str(place.python), "-W", "ignore", str(script), *paths, str(place.models)]
            subprocess.run(command, check=True, stdout=log, stderr=subprocess.STDOUT)
    stamp.write_text(source, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
