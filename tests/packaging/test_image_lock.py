"""What `make lock` puts into the image: all that its commands need, in the versions that tests ran with."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: The image runs services and producers. Analysts install theirs (docs/containers.md).
NOT_IN_IMAGE = {"analysis", "demo", "dev", "s3"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = sorted(PROJECT["optional-dependencies"].keys() - NOT_IN_IMAGE)


def locked(file: str) -> dict[str, str]:
    """Return versions by package."""
    return dict(re.findall(r"^([\w-]+)==(\S+)", (ROOT / file).read_text(), re.MULTILINE))


def test_image_has_the_packages_of_all_extras_for_services() -> None:
    asked = [each for extra in EXTRAS for each in PROJECT["optional-dependencies"][extra]]
    names = {re.split(r"[\[<>=~ ]", each)[0].replace(".", "-") for each in asked + PROJECT["dependencies"]}
    assert {"edge", "worker"} <= set(EXTRAS)
    assert sorted(names - locked("deploy/image/requirements.lock").keys()) == []


def test_image_has_the_versions_that_tests_ran_with() -> None:
    assert locked("deploy/image/requirements.lock").items() <= locked("requirements.lock").items()
