"""``wmrl``: one command, one dataclass, one call."""

import sys
from typing import Annotated

import tyro

from wmrl_embodied.commands.bench import Bench
from wmrl_embodied.commands.collect import Collect
from wmrl_embodied.commands.compare import Compare
from wmrl_embodied.commands.envs import Envs
from wmrl_embodied.commands.evaluate import Eval
from wmrl_embodied.commands.report import Report
from wmrl_embodied.commands.sft import Sft
from wmrl_embodied.commands.simulate import Simulate
from wmrl_embodied.commands.tasks import Tasks
from wmrl_embodied.commands.train import Resume, Train
from wmrl_embodied.commands.world_model import FidelityCommand
from wmrl_envs.errors import WmrlError

Command = (
    Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Resume, tyro.conf.subcommand("resume")]
    | Annotated[Eval, tyro.conf.subcommand("eval")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[Compare, tyro.conf.subcommand("compare")]
    | Annotated[FidelityCommand, tyro.conf.subcommand("fidelity")]
    | Annotated[Collect, tyro.conf.subcommand("collect")]
    | Annotated[Sft, tyro.conf.subcommand("sft")]
    | Annotated[Simulate, tyro.conf.subcommand("simulate")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
    | Annotated[Envs, tyro.conf.subcommand("envs")]
    | Annotated[Tasks, tyro.conf.subcommand("tasks")]
)


def main() -> None:
    """Run the command line; an error that the user can mend is one line and exit code 2."""
    try:
        command = tyro.cli(
            Command,
            prog="wmrl",
            config=(
                tyro.conf.OmitArgPrefixes,
                tyro.conf.OmitSubcommandPrefixes,
                tyro.conf.CascadeSubcommandArgs,
            ),
        )
        code = command.run()
    except WmrlError as error:
        print(f"wmrl: {error}", file=sys.stderr)  # noqa: T201  (the command line's own output)
        code = 2
    sys.exit(code)


if __name__ == "__main__":
    main()
