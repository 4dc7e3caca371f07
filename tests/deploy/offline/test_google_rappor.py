"""google/rappor's files are read as that project writes them, and decoded."""

from functools import partial

import numpy as np

from deniable.deploy.offline.google_rappor import parse_counts, parse_map, parse_params
from deniable.estimators.decoding.bloom import decode, decode_design
from deniable.estimators.mechanisms.rappor import Rappor
from tests.support.estimators.simulation import generator, rappor_counts, zipf_counts
from tests.support.messages import PinMessages

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


def test_messages_of_params(pin_messages: PinMessages) -> None:
    texts = {
        "no line": "",
        "a column is missing": "k,h,m,p,q\n1,1,1,0,1",
        "a column twice": "k,h,m,p,q,q\n1,1,1,0,1,1",
        "values are missing": f"{HEADER}\n1,1,1",
        "k is a fraction": f"{HEADER}1.5,1,1,0,1,0.5",
        "q is text": f"{HEADER}8,1,1,0,one,0.5",
        "k is 0": f"{HEADER}0,1,1,0,1,0.5",
        "h exceeds k": f"{HEADER}8,9,1,0,1,0.5",
        "m is too large": f"{HEADER}8,2,{10**12},0,1,0.5",
        "m and k are too large together": f"{HEADER}4096,2,4097,0,1,0.5",
        "f is 1": f"{HEADER}8,2,1,0,1,1",
        "q is NaN": f"{HEADER}8,2,1,0,nan,0.5",
        "p exceeds q": f"{HEADER}8,2,1,0.7,0.6,0.5",
        "bits without noise": f"{HEADER}8,2,1,0,1,0",
    }
    pin_messages({what: partial(parse_params, text) for what, text in texts.items()})


def test_messages_of_counts(pin_messages: PinMessages) -> None:
    texts = {
        "a cohort is missing": "5,1,2\n",
        "a cell is missing": "5,1,2\n5,1\n",
        "a negative number": "5,1,2\n5,1,-2\n",
        "a fraction": "5,1,2\n5,1.5,1\n",
        "too large a number": "5,1,2\n\n5,1,12345678901234\n",
        "more bits than reports": "5,1,2\n5,1,7\n",
        "no report": "0,0,0\n0,0,0\n",
        "too long a cell": "5,1," + "2" * 200_000,
    }
    params = parse_params("k,h,m,p,q,f\n2,1,2,0.5,0.75,0.5")
    pin_messages({what: partial(parse_counts, text, params) for what, text in texts.items()})


def test_messages_of_maps(pin_messages: PinMessages) -> None:
    texts = {
        "no candidate": "",
        "a candidate twice": "apple,1\nbanana,2\napple,3\n",
        "too many positions": "apple,1,2,3,4,5,6,7,8,9\n",
        "a position is text": "apple,one\n",
        "position 0": "apple,1,0\n",
        "a position behind the last": "apple,65\n",
        "a quote that does not close": '"apple,1\n',
    }
    pin_messages({what: partial(parse_map, text, parse_params(PARAMS)) for what, text in texts.items()})
