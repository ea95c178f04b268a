"""``wmrl simulate``: the robustness suite of the estimators."""

from dataclasses import dataclass, field

from wmrl_embodied.simulate.cli import SimulateCommand, main


@dataclass(frozen=True, kw_only=True, slots=True)
class Simulate:
    """Compare estimators at equal cost under nine kinds of world-model error."""

    command: SimulateCommand = field(default_factory=SimulateCommand)
    """What to compare."""

    def run(self) -> int:
        """Run the suite, print and write its table."""
        return main(self.command)
