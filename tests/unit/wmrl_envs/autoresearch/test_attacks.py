"""The attack suite: programs that try to break out of the sandbox, every one contained."""

import os
import shutil
import socket
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from wmrl_envs.autoresearch.sandbox import Execution, Limits, Program, Sandbox, SandboxConfig

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

ATTACKS = tomllib.loads((Path(__file__).parent / "attacks.toml").read_text(encoding="utf-8"))
SLOW = pytest.mark.slow
LIMITS = Limits(
    wall_s=2.0, cpu_s=1.0, memory_bytes=256 << 20, processes=32, file_bytes=16 << 20,
    disk_bytes=32 << 20, files=1000, output_bytes=32 << 10,
)  # fmt: skip
TOKEN = "token-4f1c"  # noqa: S105  (what the attacks look for)
NAP = "86123.25"


@dataclass(frozen=True)
class Host:
    """What attacks aim at, and the sandbox between."""

    sandbox: Sandbox
    folder: Path
    port: int
    socket_name: str

    def attack(self, code: str) -> Execution:
        """Run an attack with the host's names filled in."""
        names = {
            "@SECRET@": str(self.folder / "private" / "answers.csv"),
            "@OUTSIDE@": str(self.folder),
            "@PORT@": str(self.port),
            "@SOCKET@": self.socket_name,
            "@NAP@": NAP,
        }
        for name, value in names.items():
            code = code.replace(name, value)
        return self.sandbox.run(Program(code=code, public=self.folder / "public", limits=LIMITS))


@pytest.fixture(scope="module", params=["bubblewrap", pytest.param("landlock", marks=SLOW)])
def host(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("host")
    folder.chmod(0o777)
    for name, text in (("public/train.csv", "a\n1\n"), ("private/answers.csv", TOKEN)):
        (folder / name).parent.mkdir(mode=0o755)
        (folder / name).write_text(text, encoding="utf-8")
    os.environ["WMRL_TEST_TOKEN"] = TOKEN
    name = f"wmrl-test-{os.getpid()}"
    config = SandboxConfig(level=request.param, preload=("numpy",), attempts=1)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as abstract,
        Sandbox(config, publics=[folder / "public"]) as sandbox,
    ):
        abstract.bind(f"\0{name}")
        abstract.listen()
        yield Host(sandbox, folder, server.getsockname()[1], name)
    del os.environ["WMRL_TEST_TOKEN"]


def _running(command: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if command.encode() in path.read_bytes():
                return True
        except OSError:
            continue
    return False


@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_an_attack_is_contained(name: str, host: Host) -> None:
    attack = ATTACKS[name]
    before = sorted(path.name for path in host.folder.rglob("*"))

    result = host.attack(attack["code"])

    shown = f"{result.stdout}{result.stderr}{(result.collected or b'').decode(errors='replace')}"
    assert "\nESCAPED" not in f"\n{result.stdout}", result
    assert TOKEN not in shown
    # A slow or loaded machine may end any of them by the clock or the processor's first.
    assert result.status in (*attack.get("status", [result.status]), "timeout", "cpu"), result
    assert len(result.stdout) <= LIMITS.output_bytes + 100
    assert len(result.stderr) <= LIMITS.output_bytes + 100
    assert result.seconds < LIMITS.wall_s + 3.0
    assert result.peak_memory_bytes < 1 << 30
    assert sorted(path.name for path in host.folder.rglob("*")) == before
    assert not _running(NAP)
    after = host.attack("import numpy; print(6 * 7)")
    assert (after.status, after.stdout) == ("ok", "42\n")


def test_the_suite_is_large() -> None:
    assert len(ATTACKS) >= 40


@pytest.mark.parametrize(
    "name", ["read_the_answers_by_path", "read_secrets_in_the_environment", "write_outside"]
)
def test_attacks_find_their_aim_where_nothing_hides_it(name: str, host: Host) -> None:
    unsafe = SandboxConfig(level="rlimits", unsafe=True, preload=(), attempts=1)
    with Sandbox(unsafe, publics=[host.folder / "public"]) as open_sandbox:
        result = Host(open_sandbox, host.folder, host.port, host.socket_name).attack(
            ATTACKS[name]["code"]
        )
    (host.folder / "written").unlink(missing_ok=True)
    # The environment is cleared at every level; files are not hidden at this one.
    assert ("ESCAPED" in result.stdout) == (name != "read_secrets_in_the_environment"), result


def test_planted_modules_do_not_reach_the_next_program(host: Host) -> None:
    planted = "for name in ('numpy', 'csv', 'sitecustomize', 'json'):\n"
    planted += "    open(name + '.py', 'w').write('print(\"planted\")')\n"
    planted += "import builtins, numpy\nbuiltins.print = None\nnumpy.array = None\n"

    host.attack(planted)
    result = host.attack(
        "import os, csv, json, numpy\nprint(numpy.array([1]), sorted(os.listdir()))"
    )

    assert result.stdout == "[1] ['input', 'main.py']\n"


def test_a_failure_says_where_and_why(host: Host) -> None:
    result = host.attack("x = 1\n\nraise ValueError('no such column')\n")

    assert (result.status, result.error_type) == ("error", "ValueError")
    assert (result.message, result.line) == ("no such column", 3)


def test_equal_programs_have_equal_outcomes(host: Host) -> None:
    code = "import random, numpy\nprint(random.random(), numpy.random.rand(), hash('a'))"

    assert host.attack(code).stdout == host.attack(code).stdout
