"""google/rappor's files are read as that project writes them, and decoded."""

import numpy as np
import pytest

from deploy.offline.google_rappor import parse_counts, parse_map, parse_params
from estimators.decoding.bloom import decode, decode_design
from estimators.mechanisms.rappor import Rappor
from tests.support.estimators.simulation import generator, rappor_counts, zipf_counts

PARAMS = "k,h,m,p,q,f\n16,2,4,0.5,0.75,0.5\n"
# Published positions of google/rappor's Python client for 16 bits, 2 hashes and cohorts 0 to 3.
MAP = """apple,5,1,26,26,38,34,63,62
banana,12,14,28,24,37,34,62,49
carrot,4,12,25,21,48,38,61,54
"""
COUNTS = "\n".join(f"{20 + c}," + ",".join(str(c + bit) for bit in range(16)) for c in range(4))
SMALL = Rappor.from_probabilities(16, 2, 4, 0.5, 0.5, 0.75)


def test_params_are_read_in_any_order_of_names():
    read = parse_params(PARAMS)
    assert (read.k, read.h, read.m, read.p, read.q, read.f) == (16, 2, 4, 0.5, 0.75, 0.5)
    assert (read.p_star, read.q_star) == (0.5625, 0.6875)
    assert parse_params('"f","m","h","k","p","q"\r\n0.5,4,2,16,0.5, 0.75\r\n') == read


def test_counts_are_totals_and_bits():
    counts = parse_counts(COUNTS, parse_params(PARAMS))
    assert counts.cohort_sizes.tolist() == [20, 21, 22, 23]
    np.testing.assert_array_equal(counts.ones, np.arange(4)[:, None] + np.arange(16))


def test_an_empty_cell_of_counts_is_0():
    counts = parse_counts("9, ,3\n", parse_params("k,h,m,p,q,f\n2,1,1,0.5,0.75,0.5"))
    assert counts.ones.tolist() == [[0, 3]]


def test_map_is_the_published_hash():
    candidates, design = parse_map(MAP, parse_params(PARAMS))
    assert candidates == ["apple", "banana", "carrot"]
    assert (np.flatnonzero(design.toarray()[:, 0]) + 1).tolist() == [1, 5, 26, 34, 38, 62, 63]
    ones, sizes = rappor_counts(generator(1), zipf_counts(3, 50_000), candidates, SMALL)
    text = "\n".join(",".join(map(str, [size, *row])) for size, row in zip(sizes, ones, strict=True))
    counts = parse_counts(text, parse_params(PARAMS))
    read, direct = (
        decode_design(counts, design, 2 / 16, background=True),
        decode(ones, sizes, candidates, SMALL),
    )
    np.testing.assert_allclose(read.frequency, direct.frequency, atol=1e-9)
    np.testing.assert_allclose(read.std_error, direct.std_error, rtol=1e-9)


def test_empty_cells_set_nothing_and_names_are_quoted_text():
    candidates, design = parse_map(
        '"a, b",5,,26\r\n\r\n"c ""d""",,,,,,,,64\r\nnone,,\n', parse_params(PARAMS)
    )
    assert candidates == ["a, b", 'c "d"', "none"]
    assert [np.flatnonzero(column).tolist() for column in design.toarray().T] == [[4, 25], [63], []]


def test_a_candidate_without_bits_has_no_error_bar():
    candidates, design = parse_map(MAP + "none\n", parse_params(PARAMS))
    result = decode_design(parse_counts(COUNTS, parse_params(PARAMS)), design, 2 / 16, background=True)
    assert len(candidates) == 4
    assert np.isinf(result.std_error).tolist() == [False, False, False, True]


HEADER = "k,h,m,p,q,f\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must have 2 lines, the header k,h,m,p,q,f and values, got 0"),
        ("k,h,m,p,q\n1,1,1,0,1", "line 1 must be the header k,h,m,p,q,f, in any order"),
        ("k,h,m,p,q,q\n1,1,1,0,1,1", "line 1 must be the header k,h,m,p,q,f, in any order"),
        (f"{HEADER}\n1,1,1", "line 3 must have 6 values, got 3"),
        (f"{HEADER}1.5,1,1,0,1,0.5", "k must be a whole number, got '1.5'"),
        (f"{HEADER}8,1,1,0,one,0.5", "q must be a number, got 'one'"),
        (f"{HEADER}0,1,1,0,1,0.5", r"k must be in \[1, 65536\], got 0"),
        (f"{HEADER}8,9,1,0,1,0.5", r"h must be in \[1, k = 8\], got 9"),
        (f"{HEADER}8,2,{10**12},0,1,0.5", rf"m must be in \[1, 65536\], got {10**12}"),
        (f"{HEADER}4096,2,4097,0,1,0.5", r"m \* k must be at most 16777216, got 16781312"),
        (f"{HEADER}8,2,1,0,1,1", r"f must be in \[0, 1\), got 1.0"),
        (f"{HEADER}8,2,1,0,nan,0.5", r"q must be in \(0, 1\], got nan"),
        (f"{HEADER}8,2,1,0.7,0.6,0.5", r"p must be in \[0, q = 0.6\), got 0.7"),
        (
            f"{HEADER}8,2,1,0,1,0",
            r"p\* and q\* must be in \(0, 1\) with p\* < q\*, so that bits are noisy, got p\* = 0.0"
            r" and q\* = 1.0",
        ),
    ],
)
def test_bad_params_are_refused(text, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        parse_params(text)


COUNT = r"must be a whole number in \[0, 10000000000000\]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5,1,2\n", "must have m = 2 lines, one for each cohort, got 1"),
        ("5,1,2\n5,1\n", r"line 2 must have k \+ 1 = 3 cells, got 2"),
        ("5,1,2\n5,1,-2\n", f"line 2, cell 3 {COUNT}, got -2"),
        ("5,1,2\n5,1.5,1\n", f"line 2, cell 2 {COUNT}, got 1.5"),
        ("5,1,2\n\n5,1,12345678901234\n", f"line 3, cell 3 {COUNT}, got 12345678901234"),
        ("5,1,2\n5,1,7\n", "line 2, cell 3 must be at most the reports of the cohort, 5, got 7"),
        ("0,0,0\n0,0,0\n", "must have at least 1 report, got 0"),
        ("5,1," + "2" * 200_000, "line 1 is no CSV: field larger than field limit .131072."),
    ],
)
def test_bad_counts_are_refused(text, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        parse_counts(text, parse_params("k,h,m,p,q,f\n2,1,2,0.5,0.75,0.5"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must have at least 1 candidate, got 0"),
        ("apple,1\nbanana,2\napple,3\n", "line 3 repeats the candidate of line 1"),
        ("apple,1,2,3,4,5,6,7,8,9\n", r"line 1 must have at most m \* h = 8 positions, got 9"),
        ("apple,one\n", r"line 1, cell 2 must be a whole number in \[1, 64\], got text"),
        ("apple,1,0\n", r"line 1, cell 3 must be a whole number in \[1, 64\], got 0"),
        ("apple,65\n", r"line 1, cell 2 must be a whole number in \[1, 64\], got 65"),
        ('"apple,1\n', "line 1 is no CSV: unexpected end of data"),
    ],
)
def test_a_bad_map_is_refused(text, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        parse_map(text, parse_params(PARAMS))
