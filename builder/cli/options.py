"""Options that several verbs share."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

config_argument = click.argument("config", type=click.Path(path_type=Path, dir_okay=False))
build_root_option = click.option(
    "--build-root",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build"),
    show_default=True,
    envvar="TANDEM_BUILD_ROOT",
    help="Folder that holds build/<name>/ of every pair.",
)
_models_option = click.option(
    "--models",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="TANDEM_MODELS",
    help="Folder with checkpoints by their hub id (DIR/owner/name), looked in before the hub.",
)
_offline_option = click.option(
    "--offline", is_flag=True, envvar="TANDEM_OFFLINE", help="Never ask the model hub; its local cache still counts."
)


def places_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--build-root`, `--models` and `--offline`, passed on together as `places`."""

    @build_root_option
    @_models_option
    @_offline_option
    @functools.wraps(command)
    def with_places(*arguments: Any, build_root: Path, models: Path | None, offline: bool, **options: Any) -> Any:
        from builder.pipeline.session import Places

        return command(*arguments, places=Places(build_root, models, offline), **options)

    return with_places


json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on the last line of standard output.")
tritonserver_option = click.option(
    "--tritonserver",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="TANDEM_TRITONSERVER",
    help="The server to start; otherwise PATH, the container's place, the installed wheel.",
)
