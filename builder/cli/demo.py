"""`tandem demo fetch`."""

from pathlib import Path

import click

from builder.cli.console import progress_display


@click.group()
def command() -> None:
    """Demo pairs that need no download but packages."""


@command.command()
@click.option("--name", default="smollm2-135m", show_default=True, help="Which demo.")
@click.option("--into", type=click.Path(path_type=Path, file_okay=False), default=Path("checkpoints"), show_default=True)
@click.pass_obj
def fetch(options: dict[str, bool], name: str, into: Path) -> None:
    """Make the demo's checkpoint folders; what is there and whole is kept.

    Example: tandem demo fetch
    """
    from builder import registry

    with progress_display("demo", quiet=options["quiet"]) as progress:
        folders = registry.demo(name).fetch(into, progress)
    for role, folder in folders.items():
        click.echo(f"{role}: {folder}")
