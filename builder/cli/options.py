"""Options that several verbs share."""

from pathlib import Path

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
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on the last line of standard output.")
tritonserver_option = click.option(
    "--tritonserver",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="TANDEM_TRITONSERVER",
    help="The server to start; otherwise PATH, the container's place, the installed wheel.",
)
