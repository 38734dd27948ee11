"""`tandem schema`."""

import click


@click.command()
def command() -> None:
    """Print the JSON Schema of a pair file, with every default.

    Example: tandem schema > configs/schema.json
    """
    from builder.spec.schema import schema_text

    click.echo(schema_text(), nl=False)
