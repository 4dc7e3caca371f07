"""The simulated coverage of texts counts what intervals hold over windows, and its table shows it."""

import numpy as np
import pytest

from bench.estimators.text_coverage import (
    CANDIDATES,
    DECOYS,
    HASHED,
    LISTED,
    TextCell,
    bit_counts,
    bloom_cell,
    hashed_cell,
    hashed_counts,
    held_texts,
    text_cell,
    text_table,
    texts_of,
)
from estimators.frequency.estimate import Estimate, Misfit
from estimators.mechanisms.hashing.hash_functions import hash_functions_of
from estimators.mechanisms.rappor import Rappor


def test_a_fifth_of_the_clients_hold_texts_that_no_list_has():
    held = held_texts(1000, 0.2, 30)
    assert (len(held), held[:LISTED].sum(), held[LISTED:].sum()) == (LISTED + 30, 800, 200)
    assert not set(texts_of(30)[LISTED:]) & set(CANDIDATES)
    assert held_texts(1000, 0.0, 0).sum() == 1000


@pytest.mark.parametrize("name", HASHED)
def test_hashed_reports_are_true_as_often_as_the_response_says(name):
    """5 standard deviations, .0016: a false alarm in 1e-6 of seeds; a response of another epsilon is far."""
    mechanism, held = HASHED[name], np.array([100_000])
    counts = hashed_counts(held, ["JFK"], mechanism, 7, np.random.default_rng(1))
    functions = hash_functions_of(mechanism, 7)
    every = np.arange(mechanism.hash_functions)
    true = functions.buckets(functions.words(["JFK"]).repeat(len(every)), every)
    hits = counts[every * mechanism.hash_buckets + true].sum()
    assert counts.sum() == 100_000
    assert abs(hits / 100_000 - mechanism.response.p) < 5 * 0.0016


def test_bits_are_reported_as_often_as_rappor_says():
    """5 standard deviations of a count of 100,000: a false alarm in 1e-4 of seeds, of 128 bits."""
    mechanism = Rappor.from_probabilities(128, 2, 1, 0.25, 0.35, 0.65)
    shown, sizes = bit_counts(np.array([100_000]), ["JFK"], mechanism, np.random.default_rng(1))
    assert sizes.tolist() == [100_000]
    near = np.minimum(abs(shown - 1e5 * mechanism.q_star), abs(shown - 1e5 * mechanism.p_star))
    assert near.max() < 5 * 160
    assert (shown > 1e5 * (mechanism.p_star + mechanism.q_star) / 2).sum() == 2


def test_flagged_candidates_count_as_neither_covered_nor_missed():
    held = held_texts(1000, 0.0, 0)
    truth = np.append(held, np.zeros(DECOYS)) / 1000
    unreliable = np.zeros(len(truth), np.bool_)
    unreliable[0] = True
    low, high = truth.copy(), truth.copy()
    low[:2] += 1e-6  # of the two most frequent ones, the first is flagged
    misfit = Misfit(truth, unreliable, np.zeros((1, 128), np.bool_))
    found = Estimate("mle", 1000, truth, truth, low, high, unreliable, (0.01, 0.01), misfit=misfit)
    cell = text_cell("rappor", held, 0.0, 3, lambda rng: found)
    assert cell.covered == pytest.approx(1 - 1 / (len(truth) - 1))
    assert (cell.least, cell.flagged, cell.other) == (0.0, pytest.approx(1 / len(truth)), 1.0)


def test_cells_of_both_kinds_are_estimated():
    for cell in (hashed_cell("local-hash, epsilon 4", 10_000, 0.2, 30, 3), bloom_cell(8, 10_000, 0.2, 1, 2)):
        assert 0.85 < cell.covered <= 1
        assert cell.least <= cell.first_percent <= 1


def test_table_has_a_summary_of_each_mechanism():
    cells = [
        TextCell("local-hash, epsilon 1", 1000, 0.2, 30, 2, 0.96, 0.9, 0.5, 0.0, 1.0),
        TextCell("local-hash, epsilon 2", 1000, 0.0, 0, 2, 0.94, 0.9, 0.6, 0.0, 1.0),
    ]
    lines = text_table(cells).splitlines()
    assert lines[2] == "| local-hash, epsilon 1 | 1,000 | 20 % in 30 | 96.0 | 90.0 | 50.0 | 0.0 | 100.0 |"
    assert lines[3].startswith("| local-hash, epsilon 2 | 1,000 | none |")
    assert lines[-1] == "All of local-hash: covered 95.0 %, least cell 94.0 %, least candidate 50.0 %.  "
