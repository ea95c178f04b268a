"""Tests prepare the tasks' data in a folder of their own."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("cache")
    for path in (folder.parent, folder):
        path.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WMRL_CACHE", str(folder))
        yield
