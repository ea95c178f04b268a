"""Checks of ``wmrl_envs.autoresearch.sandbox``: choice of the wall, records, retries, limits."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from wmrl_envs.autoresearch.sandbox import Limits, Program, Sandbox, SandboxConfig, wall
from wmrl_envs.autoresearch.sandbox.bench import bench_sandbox
from wmrl_envs.autoresearch.sandbox.diagnosis import Diagnosis, diagnose
from wmrl_envs.autoresearch.sandbox.inside.watch import Output
from wmrl_envs.errors import DependencyNotInstalledError, InfrastructureError, InvalidInputError

QUICK = Limits(wall_s=20.0, cpu_s=10.0, memory_bytes=256 << 20)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    try:
        made = Sandbox(SandboxConfig(preload=(), attempts=2))
    except DependencyNotInstalledError as error:
        pytest.skip(str(error))
    with made:
        yield made


def _kill_worker(sandbox: Sandbox) -> None:
    worker = sandbox._idle[0].worker
    assert worker is not None
    worker.kill()


def test_a_worker_that_died_is_replaced_and_the_program_run_again(sandbox: Sandbox) -> None:
    sandbox.warm_up()
    _kill_worker(sandbox)
    record = sandbox.run(Program(code="print(1)", limits=QUICK))
    assert (record.status, record.stdout, record.attempts) == ("ok", "1\n", 2)


def test_an_execution_that_cannot_be_made_is_missing_not_failed(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise InfrastructureError("no worker comes up")

    monkeypatch.setattr("wmrl_envs.autoresearch.sandbox.pool.Worker", broken)
    assert sandbox.run_many([Program(code="print(1)", limits=QUICK)]) == [None]
    with pytest.raises(InfrastructureError, match="no worker comes up"):
        sandbox.run(Program(code="print(1)", limits=QUICK))


def test_records_keep_the_order_of_the_programs() -> None:
    with Sandbox(SandboxConfig(preload=(), workers=2)) as sandbox:
        programs = [Program(code=f"print({number})", limits=QUICK) for number in range(6)]
        records = sandbox.run_many(programs)
    assert [record and record.stdout for record in records] == [f"{n}\n" for n in range(6)]


def test_the_record_tells_cost_and_file(sandbox: Sandbox) -> None:
    code = "block = bytearray(b'x') * (64 << 20)\nopen('out.txt', 'w').write('hello')\n"
    code += "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass"
    record = sandbox.run(Program(code=code, collect="out.txt", limits=QUICK))
    assert record.collected == b"hello"
    assert record.cpu_seconds >= 0.2
    assert record.peak_memory_bytes > 60 << 20
    assert record.seconds >= 0.2


def test_a_folder_unknown_to_the_worker_is_shown_after_a_restart(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    sandbox.warm_up()
    public = tmp_path / "public"
    public.mkdir(mode=0o755)
    (public / "a.csv").write_text("x", encoding="utf-8")
    program = Program(code="print(open('input/a.csv').read())", public=public, limits=QUICK)
    assert sandbox.run(program).stdout == "x\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's files need other users' rights")
def test_public_files_that_programs_cannot_read_are_named(sandbox: Sandbox, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with pytest.raises(InvalidInputError, match=r"chmod -R o\+rX"):
        sandbox.run(Program(code="", public=tmp_path))


def test_a_closed_sandbox_runs_nothing(sandbox: Sandbox) -> None:
    sandbox.close()
    with pytest.raises(InvalidInputError, match="must be open"):
        sandbox.run(Program(code=""))


def test_resource_limits_alone_must_be_asked_for() -> None:
    with pytest.raises(InvalidInputError, match="unsafe=True"):
        Sandbox(SandboxConfig(level="rlimits"))


def test_without_any_wall_the_error_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wall.shutil, "which", lambda _: None)
    monkeypatch.setattr(wall.landlock, "version", lambda: 0)
    with pytest.raises(
        DependencyNotInstalledError, match="apt-get install -y bubblewrap"
    ) as caught:
        Sandbox()
    assert "\n" not in str(caught.value)
    assert Sandbox(SandboxConfig(unsafe=True)).level == "rlimits"


def test_an_unknown_level_lists_the_known() -> None:
    with pytest.raises(InvalidInputError, match="bubblewrap, landlock, rlimits"):
        Sandbox(SandboxConfig(level="docker"))  # ty: ignore[invalid-argument-type]


@pytest.mark.parametrize("name", ["../answers.csv", "", "..", "a/b"])
def test_only_plain_names_are_collected(name: str) -> None:
    with pytest.raises(InvalidInputError, match="plain file name"):
        Program(code="", collect=name)


def test_limits_must_be_positive() -> None:
    with pytest.raises(InvalidInputError, match=r"limits\.wall_s must be above 0"):
        Limits(wall_s=0.0)


@pytest.mark.parametrize(
    ("text", "code", "found"),
    [
        (
            'Traceback (most recent call last):\n  File "main.py", line 3, in <module>\n'
            '  File "/lib/x.py", line 99, in f\nnumpy.linalg.LinAlgError: singular\n',
            1,
            Diagnosis(error_type="numpy.linalg.LinAlgError", message="singular", line=3),
        ),
        (
            '  File "main.py", line 2\n    def f(:\n          ^\nSyntaxError: invalid syntax\n',
            1,
            Diagnosis(error_type="SyntaxError", message="invalid syntax", line=2),
        ),
        ("", -11, Diagnosis(error_type="SIGSEGV", message="killed by a signal")),
        ("bye", 3, Diagnosis(error_type="SystemExit", message="exit code 3")),
    ],
)
def test_the_traceback_tells_type_message_and_line(text: str, code: int, found: Diagnosis) -> None:
    assert diagnose(text, code) == found


def test_output_keeps_its_beginning_and_its_end() -> None:
    output = Output(10)
    for part in (b"abcde", b"fghij", b"klmnop"):
        output.add(part)
    assert output.text() == "abcde\n[... 6 bytes left out ...]\nlmnop"


@pytest.mark.slow
def test_the_overhead_of_a_warm_worker_is_small() -> None:
    figures = bench_sandbox(SandboxConfig(), programs=10)
    # The median is under 0.2 s on an idle machine; a busy one slows the plain process alike.
    assert figures.overhead_s < max(0.2, 4 * figures.plain_overhead_s)
    assert figures.over_plain_s < 0.2
