"""The collection file, written by whoever runs a deployment: CollectionFileError names what is wrong."""

import re
import tempfile
from pathlib import Path

from deniable.config.file import CollectionFileError, load
from tests.support.deploy.collection_texts import HEAD, KRR_ENTRY, RAPPOR_ENTRY, WHOLE

FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-"))
FILE = FOLDER / "deniable.yaml"
SEEDS = [
    text.encode()
    for text in (
        WHOLE,
        HEAD + KRR_ENTRY,
        HEAD + KRR_ENTRY.replace('values: [AA, B6, "9E"], other: false', "size: 1000"),
        HEAD + KRR_ENTRY.replace("k-rr", "k-rr-longitudinal").replace("epsilon", "epsilon_inf"),
        HEAD + KRR_ENTRY.replace("budget: none", "budget: {epsilon: 10, delta: 1e-6, period_seconds: 86400}"),
        HEAD + RAPPOR_ENTRY.replace("candidates: [JFK, LAX]", "candidates_file: words.txt"),
        HEAD + RAPPOR_ENTRY.replace("rappor", "rappor-one-hot").replace("candidates", "values"),
        HEAD
        + KRR_ENTRY.replace("k-rr", "number").replace(
            'values: [AA, B6, "9E"], other: false', "minimum: -1, maximum: 1.5, steps: 64"
        ),
        HEAD
        + KRR_ENTRY.replace("k-rr", "k-rr-pair").replace(
            'values: [AA, B6, "9E"], other: false',
            "fields: [{name: a, values: [x], epsilon: 1}, {name: b, values: [y, z], other: false}]",
        ),
        HEAD
        + KRR_ENTRY.replace("k-rr", "one-hot-pair").replace(
            'values: [AA, B6, "9E"], other: false',
            "fields: [{name: a, values: [x]}, {name: b, values: [y, z], other: false}]",
        ),
        'kafka: {bootstrap_servers: "127.0.0.1:9092", partitions: 2}\nproducer: {pack_reports: 10}\n' + WHOLE,
        "&a [*a, 1e-6, ~, 0x10, 2001-01-01, !!set {a}]",
    )
]
WORD = re.compile(rb"[\w.\-]+")
WORDS = sorted({word for seed in SEEDS for word in WORD.findall(seed)})
ODD = [
    *(
        b"-1",
        b"0",
        b"1e308",
        b"1e-320",
        b".nan",
        b".inf",
        b"1" + b"0" * 30,
        b"0.5",
        b"2147483648",
        b"4294967296",
    ),
    *(
        b"true",
        b"null",
        b'""',
        b"[]",
        b"{}",
        b"[1, [2]]",
        b"{a: 1}",
        b"2001-01-01",
        b"!!binary AA",
        b"&a",
        b"*a",
    ),
    *(b"/dev/null", b"..", b'"\\0"', b'"\\ud800"', "\u00e9\u0301".encode(), b"9" * 5000),
]
(FOLDER / "words.txt").write_text("JFK\nLAX\n")


def mutate(mutated: bytes, seed: int) -> bytes:
    """Bytes as they are, or a file of SEEDS of which one or two words are others: that parses more often."""
    if seed % 4 == 0:
        return mutated
    data = SEEDS[seed // 4 % len(SEEDS)]
    choices = ODD if seed % 4 == 1 else WORDS
    for turn in range(1 + seed % 2):
        places = list(WORD.finditer(data))
        place = places[(seed * 2654435761 >> 8 + turn) % len(places)]
        chosen = choices[(seed * 40503 >> 4 + turn) % len(choices)]
        data = data[: place.start()] + chosen + data[place.end() :]
    return data


def check(data: bytes) -> None:
    """The file is read, or refused with its name."""
    FILE.write_bytes(data)
    try:
        load(FILE, environment={})
    except CollectionFileError as error:
        if not re.match(rf"{re.escape(str(FILE))}(:\d+)?: ", str(error)):
            raise AssertionError(str(error)) from error
