"""The command `tandem`: verbs loaded when they are used, errors shown without a traceback, exit codes of `builder.errors`."""

import errno
import os
import signal
import sys
import traceback
from importlib import import_module
from types import FrameType

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
    "report": "Print the report of the last validation.",
    "schema": "Print the JSON Schema of a pair file.",
}


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
    verbose = "-v" in (arguments or sys.argv[1:]) or "--verbose" in (arguments or sys.argv[1:])
    try:
        result = tandem.main(arguments, prog_name="tandem", standalone_mode=False)
        return result if isinstance(result, int) else ExitCode.DONE
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return ExitCode.REFUSED
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted; finished stages are kept", err=True)
        return ExitCode.INTERRUPTED
    except TandemError as error:
        if verbose:
            traceback.print_exc()
        show_error(error)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.DONE
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        show_error(
            MissingError(
                "DISK-FULL", f"no space left: {error}", found="disk full", needed="free space", fix="free some space and run again"
            )
        )
        return ExitCode.MISSING


def _terminated(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
