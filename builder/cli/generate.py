"""`tandem generate`."""

import click

from builder.serving.generation import GenerateRequest, Generation


@click.command()
@click.argument("prompt")
@click.option("--url", default="127.0.0.1:8001", show_default=True, envvar="TANDEM_GRPC_URL", help="gRPC address of the server.")
@click.option("--max-tokens", type=click.IntRange(1), default=256, show_default=True)
@click.option("--draft-tokens", type=click.IntRange(0), default=None, help="Most draft tokens a round; 0 asks the target alone.")
@click.option("--temperature", type=click.FloatRange(0), default=None)
@click.option("--top-k", type=click.IntRange(0), default=None)
@click.option("--top-p", type=click.FloatRange(0, 1), default=None)
@click.option("--seed", type=click.IntRange(0), default=None)
@click.option("--stop", multiple=True, help="Text that ends the answer; may be given several times.")
@click.option("--raw", is_flag=True, help="Take the prompt as it is, without the chat template.")
@click.option("--deadline", type=click.FloatRange(1), default=300.0, show_default=True, help="Seconds.")
@click.option("--stats", is_flag=True, help="Show tokens per second and acceptance afterwards.")
def command(prompt: str, url: str, max_tokens: int, stats: bool, raw: bool, deadline: float, **sampling: object) -> None:
    """Ask a running server for text; it is printed as it comes.

    Example: tandem generate "Why is the sky blue?" --stats
    """
    from builder.serving.client import Client
    from builder.serving.transport import TritonTransport

    request = GenerateRequest(
        prompt,
        max_tokens,
        deadline,
        chat=not raw,
        stream=True,
        num_draft_tokens=sampling["draft_tokens"],  # type: ignore[arg-type]
        temperature=sampling["temperature"],  # type: ignore[arg-type]
        top_k=sampling["top_k"],  # type: ignore[arg-type]
        top_p=sampling["top_p"],  # type: ignore[arg-type]
        seed=sampling["seed"],  # type: ignore[arg-type]
        stop_words=sampling["stop"],  # type: ignore[arg-type]
    )
    with Client(TritonTransport(url)) as client:
        generation = client.generate(request, on_text=lambda piece: click.echo(piece, nl=False))
    click.echo()
    if stats:
        _show_stats(generation)


def _show_stats(generation: Generation) -> None:
    model_drafted = generation.drafted - generation.lookup_drafted
    model_accepted = generation.accepted - generation.lookup_accepted
    click.echo(
        f"{len(generation.output_ids)} tokens in {generation.seconds:.2f} s: {generation.tokens_per_s:.1f} tokens/s, "
        f"first after {generation.seconds_to_first_token * 1e3:.0f} ms\n"
        f"{generation.target_passes} target passes, acceptance length {generation.acceptance_length:.2f}; "
        f"draft model {model_accepted} of {model_drafted} accepted, lookup {generation.lookup_accepted} of {generation.lookup_drafted}",
        err=True,
    )
