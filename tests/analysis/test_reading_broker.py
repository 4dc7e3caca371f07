"""Tables read from a real Kafka, from files and from a worker hold exactly what is in the topics."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

import deniable
from tests.analysis.conftest import VALUES, newest_finals
from tests.support.deployments import Deployment

pytestmark = [pytest.mark.broker, pytest.mark.slow]

COLUMNS = {"values": "value", **{name: name for name in ("frequency", "std_error", "low", "high", "count")}}
TIME = "%Y-%m-%dT%H:%M:%S"


def config(deployment: Deployment) -> Path:
    return deployment.folder / "deniable.yaml"


def period(record: dict[str, Any]) -> tuple[str, ...]:
    return ("--from", str(record["coverage"]["from"]), "--to", str(record["coverage"]["to"]))


@pytest.mark.parametrize("collection", VALUES)
def test_table_has_every_figure_of_the_newest_final_records(counted: Deployment, collection: str) -> None:
    table = deniable.read_estimates(config(counted), collection=collection)
    records = newest_finals(counted, collection)
    for column, name in COLUMNS.items():
        assert table[name].to_pylist() == [each for one in records.values() for each in one[column]], name
    starts = [int(each.timestamp()) for each in table["window_start"].to_pylist()]
    assert starts == [start for start, one in records.items() for _ in one["values"]]
    assert set(table["fingerprint"].to_pylist()) == {one["fingerprint"] for one in records.values()}
    assert (set(table["final"].to_pylist()), set(table["is_other"].to_pylist())) == ({True}, {False})
    assert table.about["windows"] == len(records)


def test_last_row_of_a_window_is_the_remainder_if_asked(counted: Deployment) -> None:
    table = deniable.read_estimates(config(counted), collection="place", other=True)
    rest = table.filter(table["is_other"])
    records = newest_finals(counted, "place")
    assert rest["value"].to_pylist() == ["(other)"] * len(records)
    for name in ("frequency", "std_error", "low", "high"):
        assert rest[name].to_pylist() == [one["other"][name] for one in records.values()]
    assert table["value"].to_pylist()[:4] == ["JFK", "LAX", "SFO", "(other)"]


def test_period_contains_windows_entirely(counted: Deployment) -> None:
    first, *_, last = newest_finals(counted, "carrier")
    inside = deniable.read_estimates(config(counted), collection="carrier", start=first + 1, end=last + 1)
    starts = {int(each.timestamp()) for each in inside["window_start"].to_pylist()}
    assert starts == set(newest_finals(counted, "carrier")) - {first, last}


@pytest.mark.parametrize("collection", VALUES)
def test_worker_has_the_same_table(counted: Deployment, collection: str) -> None:
    """It keeps the last 60 windows, and these are fewer."""
    address = counted.address("worker.log")
    from_topic = deniable.read_estimates(config(counted), collection=collection, other=True)
    assert deniable.read_estimates(worker=address, collection=collection, other=True) == from_topic
    with pytest.raises(deniable.AnalysisError, match="404"):
        deniable.read_estimates(worker=address, collection="carriers")


def test_read_works_within_a_running_event_loop(counted: Deployment) -> None:
    """As in a notebook."""

    async def read() -> deniable.ArrowTable:
        return deniable.read_estimates(config(counted), collection="carrier")

    assert asyncio.run(read()) == deniable.read_estimates(config(counted), collection="carrier")


@pytest.mark.parametrize(
    ("collection", "ending"),
    [
        ("carrier", "parquet"),
        ("place", "csv"),
        pytest.param("carrier", "csv", marks=pytest.mark.nightly),
        pytest.param("place", "parquet", marks=pytest.mark.nightly),
    ],
)
def test_exported_files_have_the_same_tables(counted: Deployment, collection: str, ending: str) -> None:
    """To the last digit, also as CSV; and a second export writes nothing."""
    for kind, read in (("estimates", deniable.read_estimates), ("windows", deniable.read_windows)):
        output = f"{kind}-{ending}"
        command = ("export", collection, "--of", kind, "--format", ending, "--output", output)
        runs = [counted.run(*command) for _ in range(2)]
        assert [each.returncode for each in runs] == [0, 0], runs
        windows = len(newest_finals(counted, collection))
        assert f"{collection}: {windows} windows written to " in runs[0].stderr
        assert runs[1].stderr == f"{collection}: no new windows\n"
        options = {"other": True} if kind == "estimates" else {}
        from_topic = read(config(counted), collection=collection, **options)
        from_files = read(files=counted.folder / output, collection=collection, **options)
        assert from_files == from_topic
        assert len(from_topic) > 0


@pytest.mark.parametrize("kind", ["estimates", "windows"])
def test_export_names_windows_of_a_former_definition(counted: Deployment, kind: str) -> None:
    """Else an analyst whose collection has another epsilon now takes the empty folder for an empty topic."""
    changed = counted.folder / f"changed-{kind}.yaml"
    content = config(counted).read_text()
    part = content[content.index("name: carrier") :]
    epsilon = re.search(r"epsilon: [0-9.]+", part)
    assert epsilon is not None
    changed.write_text(content.replace(part, part.replace(epsilon[0], "epsilon: 1.7", 1)))
    done = counted.run(
        "export", "carrier", "--of", kind, "--output", f"former-{kind}", "--config", changed.name
    )
    former = newest_finals(counted, "carrier")
    (fingerprint,) = {each["fingerprint"] for each in former.values()}
    assert (done.returncode, done.stderr.splitlines()) == (
        0,
        [
            f"carrier: {len(former)} windows with other parameters (fingerprint {fingerprint}) skipped: "
            "export them with the collection file that they were counted under",
            "carrier: no new windows",
        ],
    )


def test_other_readers_read_the_files(counted: Deployment) -> None:
    """DuckDB, polars and pandas, by folder and by pattern, with the partitions as columns."""
    duckdb, polars, pandas = (pytest.importorskip(each) for each in ("duckdb", "polars", "pandas"))
    done = counted.run("export", "carrier", "--output", "readers")
    assert done.returncode == 0, done.stderr
    folder = counted.folder / "readers"
    table = deniable.read_estimates(config(counted), collection="carrier")
    expected = sorted(zip(table["window_start"].to_pylist(), table["value"].to_pylist(), strict=True))
    sql = "select window_start, value, collection, day from read_parquet($1, hive_partitioning = true)"
    names = ("window_start", "value", "collection", "day")
    rows = [
        dict(zip(names, row, strict=True))
        for row in duckdb.connect().execute(sql, [f"{folder}/**/*.parquet"]).fetchall()
    ]
    frames = [
        polars.read_parquet(folder, hive_partitioning=True).to_dicts(),
        polars.read_parquet(f"{folder}/**/*.parquet", hive_partitioning=True).to_dicts(),
        pandas.read_parquet(folder).to_dict("records"),
        rows,
    ]
    for found in frames:
        assert sorted((each["window_start"], each["value"]) for each in found) == expected
        assert {str(each["collection"]) for each in found} == {"carrier"}
        assert {str(each["day"]) for each in found} == {f"{start:%Y-%m-%d}" for start, _ in expected}


def test_libraries_take_the_table(counted: Deployment) -> None:
    duckdb, polars, pandas = (pytest.importorskip(each) for each in ("duckdb", "polars", "pandas"))
    table = deniable.read_estimates(config(counted), collection="carrier")
    largest = max(table["frequency"].to_pylist())
    assert table.to_pandas()["frequency"].max() == largest
    assert isinstance(table.to_pandas(), pandas.DataFrame)
    assert table.to_polars()["frequency"].max() == largest
    assert isinstance(table.to_polars(), polars.DataFrame)
    assert duckdb.sql('select max(frequency) from "table"').fetchall() == [(largest,)]
    assert polars.DataFrame(table)["frequency"].max() == largest


@pytest.mark.parametrize("collection", VALUES)
def test_rollup_has_the_figures_of_the_command(counted: Deployment, collection: str) -> None:
    """From the topic and from files, to the last digit."""
    command = json.loads(counted.run("rollup", collection, "--json").stdout)
    times = {"start": min(newest_finals(counted, collection)), "end": command["coverage"]["to"]}
    counted.run("export", collection, "--of", "windows", "--output", "rolled")
    for files in (None, counted.folder / "rolled"):
        table = deniable.rollup(config(counted), collection=collection, files=files, **times)
        assert table["value"].to_pylist() == command["independent"]["values"]
        for name in ("frequency", "std_error", "low", "high", "count", "significant"):
            assert table[name].to_pylist() == command["independent"][name]
            assert table[f"shared_{name}"].to_pylist() == command["shared"][name]
        assert table.about["reports"] == command["reports"] == 3 * len(VALUES[collection])
        assert table.about["overlap"] == command["overlap"]


def test_decode_has_the_figures_of_the_command(counted: Deployment) -> None:
    (counted.folder / "words.txt").write_text("BOS\nJFK\nSFO\n")
    command = json.loads(counted.run("decode", "place", "--candidates", "words.txt", "--json").stdout)
    table = deniable.decode(config(counted), collection="place", candidates=["BOS", "JFK", "SFO"], other=True)
    assert table["value"].to_pylist() == [*command["independent"]["values"], "(other)"]
    assert table["frequency"].to_pylist()[:-1] == command["independent"]["frequency"]
    assert table["std_error"].to_pylist()[-1] == command["independent"]["other"]["std_error"]
    with pytest.raises(deniable.AnalysisError, match="carrier"):
        deniable.decode(config(counted), collection="carrier", candidates=["AA"])


def test_compare_has_the_figures_of_the_command(counted: Deployment) -> None:
    first, *_, last = newest_finals(counted, "carrier")
    periods = {"first": f"{first}/{last}", "second": f"{last}/{last + 2}"}
    done = counted.run(
        "compare", "carrier", "--between", periods["first"], "--and", periods["second"], "--json"
    )
    command = json.loads(done.stdout)
    table = deniable.compare(config(counted), collection="carrier", **periods)
    assert table["value"].to_pylist() == command["values"] == ["AA", "B6", "9E"]
    assert table["difference"].to_pylist() == command["difference"]
    assert table["p_value"].to_pylist() == command["p_value"]
    assert sum(command["reports"]) == 3 * len(VALUES["carrier"])
    printed = counted.run("compare", "carrier", "--between", periods["first"], "--and", periods["second"])
    found = sum(command["significant"])  # by chance, 1 or more in 5 % of runs
    assert printed.stdout.splitlines()[2].startswith(
        f"{found} of 3 shares {'differs' if found == 1 else 'differ'} (*)"
    )


def test_page_compares_with_the_figures_of_the_command(counted: Deployment) -> None:
    """`/api/compare` of the worker that counted, from the topic; and a period without reports is refused."""
    first, *_, last = newest_finals(counted, "carrier")
    between, other = f"{first}/{last}", f"{last}/{last + 2}"
    command = counted.run(
        "compare", "carrier", "--between", between, "--and", other, "--rate", "0.1", "--json"
    )
    page = counted.address("worker.log").rstrip("/")

    def ask(second: str) -> Any:
        asked = urlencode({"collection": "carrier", "between": between, "and": second, "rate": "0.1"})
        with urlopen(f"{page}/api/compare?{asked}") as answer:  # noqa: S310 - http
            return json.load(answer)

    assert ask(other) == json.loads(command.stdout)
    with pytest.raises(HTTPError, match="HTTP Error 422") as refused:
        ask(f"{last + 600}/{last + 602}")
    assert "carrier" in refused.value.read().decode()
    refused.value.close()


def test_another_kind_or_format_is_refused_in_the_same_folder(counted: Deployment) -> None:
    assert counted.run("export", "carrier", "--output", "mixed").returncode == 0
    for options, found in (
        (("--of", "windows"), "windows as parquet"),
        (("--format", "csv"), "estimates as csv"),
    ):
        done = counted.run("export", "carrier", "--output", "mixed", *options)
        assert (done.returncode, done.stdout) == (1, "")
        said = f"Error: mixed must hold {found} alone, and holds estimates as parquet: give --output another"
        assert done.stderr.startswith(said)
