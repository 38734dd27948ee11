"""The command `tandem`: verbs loaded when they are used, errors shown without a traceback, exit codes of `builder.errors`."""

import errno
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Any

import click

from builder import __version__
from builder.cli.console import show_error
from builder.errors import ExitCode, MissingError, TandemError

VERBS = {
    "doctor": "Show what is here and what is missing for a lane.",
    "demo": "Make the demo pair's checkpoints from packages alone.",
    "plan": "Check a pair and show what would be built; changes nothing.",
    "run": "Plan, build, package, validate and report: the whole job.",
    "build": "Build the engines.",
    "package": "Build what is missing and write the model repository.",
    "serve": "Serve the packaged repository on a Triton server.",
    "generate": "Ask a running server for text over gRPC.",
    "validate": "Judge the packaged repository: lossless, accurate, faster.",
    "bench": "Measure the engine against other engines, side by side.",
    "report": "Print the report of the last validation.",
    "schema": "Print the JSON Schema of a pair file.",
    "explain": "Say what an error code means and what to do.",
}


OWN_PACKAGES = ("builder", "plugins", "triton_repo")


@contextmanager
def _gone_reader_is_no_error() -> Iterator[None]:
    """A pipe whose reader is gone ends a verb quietly; click and rich each have an exit code of their own for it."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as error:
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered goes nowhere
        raise click.exceptions.Exit(ExitCode.DONE) from None


class Verbs(click.Group):
    """Group whose commands are imported one by one, so that `--help` stays instant."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"builder.cli.{cmd_name}").command
        command.short_help = VERBS[cmd_name]
        return command

    def make_context(self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any) -> click.Context:
        with _gone_reader_is_no_error():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _gone_reader_is_no_error():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="tandem")
@click.option("-v", "--verbose", is_flag=True, help="Show tracebacks of errors.")
@click.option("-q", "--quiet", is_flag=True, help="No progress display.")
@click.pass_context
def tandem(context: click.Context, verbose: bool, quiet: bool) -> None:
    """Turn a draft and a target checkpoint into a proven Triton deployment with speculative decoding.

    Example: tandem run configs/pairs/smollm2-135m-cpu.yaml
    """
    context.obj = {"verbose": verbose, "quiet": quiet}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    signal.signal(signal.SIGTERM, _terminated)
    given = sys.argv[1:] if arguments is None else arguments
    try:
        result = tandem.main(arguments, prog_name="tandem", standalone_mode=False)
    except click.exceptions.Exit as error:
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted; finished stages are kept", err=True)
        return ExitCode.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - shown with its traceback
        return _show(error, verbose=bool({"-v", "--verbose"} & set(given)))
    return result if isinstance(result, int) else ExitCode.DONE


def _show(error: Exception, *, verbose: bool) -> int:
    """Show an error and return its exit code: in words when a person can act on it, else with its traceback."""
    if isinstance(error, click.ClickException):
        error.show()
        return ExitCode.REFUSED
    known = error if isinstance(error, TandemError) else _as_missing(error)
    if known is None:
        traceback.print_exception(error)
        return ExitCode.STAGE_FAILED
    if verbose:
        traceback.print_exception(error)
    show_error(known)
    return known.exit_code


def _as_missing(error: Exception) -> MissingError | None:
    """A full disk and a package that is not installed, as what they are."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        message = f"no space left: {error}"
        return MissingError("DISK-FULL", message, found="disk full", needed="free space", fix="free some space and run again")
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] not in OWN_PACKAGES:
        message, fix = f"this verb needs the package {error.name}", "pip install 'trt-tandem[openvino,serve]'"
        return MissingError("PACKAGE-MISSING", message, found="not installed", needed=str(error.name), fix=fix)
    return None


def _terminated(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
