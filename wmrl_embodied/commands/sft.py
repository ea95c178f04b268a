"""``wmrl sft``: clone demonstrations into the small vision-language-action policy."""

import hashlib
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from wmrl_embodied.policies.checkpoint import save_policy
from wmrl_embodied.training.sft import SftConfig, fit, samples_from
from wmrl_envs.errors import InvalidInputError
from wmrl_envs.libero.dataset import Demonstration, read_demonstrations


@dataclass(frozen=True, kw_only=True, slots=True)
class Sft:
    """Train the small policy on demonstrations in LIBERO's HDF5 layout, official ones or ours."""

    data: Path = Path("runs/demonstrations")
    """Folder of ``*_demo.hdf5`` files, or one such file."""

    out: Path = Path("runs/small_vla.safetensors")
    """Checkpoint to write."""

    demonstrations: int | None = None
    """Demonstrations a task; None is all of them."""

    config: SftConfig = field(default_factory=SftConfig)
    """The run."""

    def run(self) -> int:
        """Train, write the checkpoint and print its checksum."""
        console = Console()
        samples = samples_from(self._read(console), self.config.policy)
        console.print(f"{len(samples.proprio)} samples from {self.data}")
        with Progress(console=console) as progress:
            task = progress.add_task("training", total=self.config.steps)

            def show(step: int, metrics: dict[str, float]) -> None:
                text = f"motion error {metrics['motion_error']:.4f}"
                progress.update(task, completed=step + 1, description=text)

            policy = fit(samples, self.config, on_step=show)
        command = shlex.join(["wmrl", *sys.argv[1:]])
        save_policy(policy, self.out, note={"command": command, "seed": str(self.config.seed)})
        digest = hashlib.sha256(self.out.read_bytes()).hexdigest()
        console.print(f"{self.out}  sha256 {digest}")
        return 0

    def _read(self, console: Console) -> list[Demonstration]:
        paths = [self.data] if self.data.is_file() else sorted(self.data.glob("*_demo.hdf5"))
        if not paths:
            raise InvalidInputError(
                f"data must be a demonstration file or a folder of them, got {str(self.data)!r}; "
                "run `wmrl collect` first"
            )
        found: list[Demonstration] = []
        for path in paths:
            console.print(f"reading {path.name}")
            found += read_demonstrations(path, limit=self.demonstrations)
        return found
