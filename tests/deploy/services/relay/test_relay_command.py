"""What `deniable relay` and `deniable replay --uploads` refuse before they ask any broker."""

from pathlib import Path

import click
import pytest

from deniable.config.file import CollectionFileError
from deniable.deploy.services.aggregate.replay import replay
from deniable.deploy.services.relay.command import relay
from deniable.protocol.secrets.secret import SecretError
from tests.support.deploy.collection_texts import WHOLE


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "deniable.yaml"
    path.write_text(WHOLE)
    return path


def test_a_file_without_the_section_is_no_relay_s(file: Path) -> None:
    with pytest.raises(CollectionFileError, match="section relay"):
        relay.main(["--config", str(file)], standalone_mode=False)
    assert not (file.parent / ".deniable").exists()


def test_a_recount_of_uploads_needs_the_section_and_the_secret(file: Path) -> None:
    with pytest.raises(CollectionFileError, match="section relay"):
        replay.main(["--uploads", "--config", str(file)], standalone_mode=False)
    file.write_text(WHOLE + "relay: {}\n")
    with pytest.raises(SecretError, match="relay-secret"):
        replay.main(["--uploads", "--config", str(file)], standalone_mode=False)


@pytest.mark.parametrize("other", ["--rebuild", "--accept-loss"])
def test_a_recount_of_uploads_is_not_combined(file: Path, other: str) -> None:
    with pytest.raises(click.UsageError, match=other):
        replay.main(["--uploads", other, "--config", str(file)], standalone_mode=False)
