"""`tandem serve`."""

import time
from pathlib import Path

import click

from builder.cli.console import progress_display
from builder.cli.options import config_argument, places_options, tritonserver_option
from builder.pipeline.session import Places, Session

POLL_S = 0.5


@click.command()
@config_argument
@places_options
@tritonserver_option
@click.pass_obj
def command(options: dict[str, bool], config: Path, places: Places, tritonserver: Path | None) -> None:
    """Serve the packaged repository on loopback until Ctrl-C.

    Example: tandem serve configs/pairs/smollm2-135m-cpu.yaml
    """
    from builder.pipeline.serve import planned_ports, serving

    session = Session.open(config, places)
    ports = planned_ports(session)
    with progress_display("serve", quiet=options["quiet"]) as progress:
        server_context = serving(session, ports=ports, tritonserver=tritonserver, progress=progress)
        server = server_context.__enter__()
    try:
        click.echo(f"ready after {server.seconds_to_ready:.0f} s (Triton {server.version}); Ctrl-C stops it")
        click.echo(f"  gRPC    {server.grpc_url}")
        click.echo(f"  HTTP    http://{server.address}:{ports.http}/v2/models/tensorrt_llm_bls/generate")
        click.echo(f"  metrics http://{server.address}:{ports.metrics}/metrics")
        click.echo(f"  log     {server.log}")
        while True:
            server.check_alive()
            time.sleep(POLL_S)
    except KeyboardInterrupt:
        click.echo("stopping", err=True)
    finally:
        server_context.__exit__(None, None, None)
