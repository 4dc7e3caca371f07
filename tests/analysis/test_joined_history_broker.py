"""A history over a change of epsilon, counted by real workers: command, function and files agree."""

import json
from urllib.request import urlopen
from uuid import uuid4

import pytest

import deniable
from tests.analysis.conftest import newest_finals
from tests.support.deployments import Deployment
from tests.support.processes import wait_until

pytestmark = [pytest.mark.broker, pytest.mark.nightly]
pytest.importorskip("pyarrow", reason="the extra analysis is not installed")

VALUES = ["AA"] * 600 + ["B6"] * 300 + ["9E"] * 100
COLUMNS = ("share", "std_error", "low", "high", "shared_low", "shared_high", "p_value", "parts_of_value")


def count(deployment: Deployment, log: str, windows: int) -> None:
    """Count 1,000 reports with a worker of the file as it is, until all are in final windows."""
    (deployment.folder / "carrier.csv").write_text("\n".join(["carrier", *VALUES]) + "\n")
    with deployment.running(log, "aggregate", "--web-port", "0"):
        deployment.wait_until_ready(log)
        options = ("--input", "carrier.csv", "--field", "carrier", "--no-clients")
        # Until the worker has published what it counts, produce refuses and sends nothing.
        sent = ("produce", "carrier", *options)
        assert wait_until(lambda: deployment.run(*sent).returncode == 0, 60), deployment.run(*sent).stderr
        assert wait_until(lambda: reports(deployment) == windows * len(VALUES), 90), deployment.output(log)


def reports(deployment: Deployment) -> int:
    return sum(each["reports"] for each in newest_finals(deployment, "carrier").values())


@pytest.fixture(scope="module")
def changed(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    """A deployment whose epsilon was 3 until now; `former.yaml` is its file of then."""
    tmp_path = tmp_path_factory.mktemp("changed")
    deployment = Deployment(tmp_path, broker, f"test-{uuid4().hex[:12]}-")
    deployment.create_topics()
    file = tmp_path / "deniable.yaml"
    count(deployment, "before.log", 1)
    (tmp_path / "former.yaml").write_text(file.read_text())
    text = file.read_text()
    for old, new in (("epsilon: 3.0", "epsilon: 2.0"), ("revision: 1", "revision: 2")):
        assert text.count(old) == 1
        text = text.replace(old, new)
    file.write_text(text)
    retired = deployment.run("retire", "carrier")
    assert retired.returncode == 0, retired.stderr
    count(deployment, "after.log", 2)
    return deployment


def test_history_goes_on_across_a_change(changed: Deployment) -> None:
    skipped = changed.run("rollup", "carrier")
    assert "--former" in skipped.stderr
    done = changed.run("rollup", "carrier", "--former", "former.yaml", "--json")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert [(each["epsilon"], each["reports"]) for each in record["parts"]] == [(3.0, 1000), (2.0, 1000)]
    assert [each["change"] for each in record["parts"]] == ["epsilon 3 to 2", ""]
    assert (record["reports"], record["passed_over"]) == (2000, {})
    alone = json.loads(changed.run("rollup", "carrier", "--json").stdout)
    assert all(
        joined < one for joined, one in zip(record["std_error"], alone["shared"]["std_error"], strict=True)
    )
    for value, low, high in zip(record["values"], record["low"], record["high"], strict=True):
        wide = 3 * (high - low)  # 95 % intervals, which one run may miss: eleven standard errors never
        assert low - wide < VALUES.count(value) / len(VALUES) < high + wide
    printed = changed.run("rollup", "carrier", "--former", "former.yaml")
    assert "  changed since: epsilon 3 to 2" in printed.stderr.splitlines()
    assert printed.stdout.splitlines()[4].split()[:2] == ["AA", "2"]

    times = {"start": record["from"], "end": record["to"]}
    config, former = (changed.folder / name for name in ("deniable.yaml", "former.yaml"))
    for name in ("deniable.yaml", "former.yaml"):
        done = changed.run("export", "carrier", "--of", "windows", "--output", "counts", "--config", name)
        assert done.returncode == 0, done.stderr
    asked = {"collection": "carrier", "former": [former], **times}
    with pytest.warns(UserWarning, match="^carrier: "):  # a day was asked for
        read = deniable.rollup(config, files=changed.folder / "counts", **asked)
    for table in (deniable.rollup(config, **asked), read):
        assert table["value"].to_pylist() == record["values"]
        for name in COLUMNS:
            assert table[name].to_pylist() == record[name]
        assert table.about["parts"] == record["parts"]
    with pytest.warns(UserWarning, match="former"):
        same = deniable.rollup(config, collection="carrier", former=[config], **times)
    assert len(same.about["parts"]) == 1


def test_page_joins_estimates_of_former_parameters(changed: Deployment) -> None:
    """Without the file of then a worker has the same shares, since those of k-RR are linear in the counts."""
    done = changed.run("rollup", "carrier", "--former", "former.yaml", "--json")
    expected = json.loads(done.stdout)
    with changed.running("page.log", "aggregate", "--web-port", "0"):
        changed.wait_until_ready("page.log")
        period = f"from={expected['parts'][0]['from']}&to={expected['parts'][-1]['to']}"
        asked = f"collection=carrier&{period}&former=estimates"
        address = f"{changed.address('page.log')}api/rollup?{asked}"
        with urlopen(address, timeout=120) as answer:  # noqa: S310 - on loopback
            record = json.load(answer)
    joined = record["joined"]
    assert (joined["unread"], joined["failure"], joined["repeated_noise"]) == (0, "", False)
    assert [(each["epsilon"], each["reports"], each["change"]) for each in joined["parts"]] == [
        (3.0, 1000, "epsilon 3 to 2")
    ]
    assert (joined["reports"], record["reports"]) == (2000, 1000)
    for name, tolerance in (("share", 2e-3), ("std_error", 2e-3), ("parts_of_value", 0)):
        found = dict(zip(joined["values"], joined[name], strict=True))
        there = dict(zip(expected["values"], expected[name], strict=True))
        assert found == pytest.approx({value: there[value] for value in found}, abs=tolerance)
    widths = []
    for each in (joined, record["sequence"]):
        place = each["values"].index("AA")  # six in ten: far from both ends of an interval
        widths.append(each["high"][place] - each["low"][place])
    assert widths[0] < widths[1]


def test_former_file_is_checked(changed: Deployment) -> None:
    config = changed.folder / "deniable.yaml"
    with pytest.raises(deniable.AnalysisError, match="former"):
        deniable.rollup(config, collection="carrier", former="former.yaml")  # type: ignore[arg-type]
    (changed.folder / "other.yaml").write_text(config.read_text().replace("name: carrier", "name: plane"))
    done = changed.run("rollup", "carrier", "--former", "other.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "carrier" in done.stderr
