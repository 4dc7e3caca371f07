"""What `make lock` puts into the image: all that its commands need, in the versions that tests ran with."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: The image runs services and producers. Analysts install theirs (docs/containers.md).
NOT_IN_IMAGE = {"analysis", "demo", "dev", "s3"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = sorted(PROJECT["optional-dependencies"].keys() - NOT_IN_IMAGE)


def locked(file: str) -> dict[str, str]:
    """Return versions by package."""
    return dict(re.findall(r"^([\w-]+)==(\S+)", (ROOT / file).read_text(), re.MULTILINE))


@pytest.mark.parametrize("extra", ["", *EXTRAS])
def test_image_has_the_packages_of_every_extra_for_services(extra: str) -> None:
    asked = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    names = {re.split(r"[\[<>=~ ]", each)[0].replace(".", "-") for each in asked}
    assert names <= locked("deploy/image/requirements.lock").keys()


def test_image_has_the_versions_that_tests_ran_with() -> None:
    assert locked("deploy/image/requirements.lock").items() <= locked("requirements.lock").items()
