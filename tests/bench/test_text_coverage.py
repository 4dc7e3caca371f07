"""The simulated coverage of texts counts what intervals hold over windows, and its rows show it."""

import numpy as np
import pytest

from bench.estimators.populations import (
    CANDIDATES,
    COVERED_UP,
    DECOYS,
    LISTED,
    bit_counts,
    bloom_mechanism,
    buckets_of,
    covering_texts,
    fixed_counts,
    hashed_counts,
    held_texts,
    texts_of,
)
from bench.estimators.text_coverage import (
    HASHED,
    REPORTS,
    UNLISTED,
    TextCell,
    bloom_cell,
    covering_cell,
    hashed,
    hashed_cell,
    one_key_cell,
    section_of,
    text_cell,
)
from deniable.estimators.decoding.design import bloom_design
from deniable.estimators.decoding.hashed.decode import decode_hashed
from deniable.estimators.frequency.estimate import Estimate, Misfit
from deniable.estimators.mechanisms.hashing.hash_functions import hash_functions_of
from deniable.estimators.mechanisms.rappor import Rappor


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


def test_reports_drawn_by_function_have_the_moments_of_single_ones():
    """Mean squares over the counters of a window: 5 standard deviations, .022 of the noise."""
    mechanism, held, texts = HASHED["local-hash, epsilon 4"], np.array([300_000, 600_000]), ["JFK", "LGA"]
    functions = hash_functions_of(mechanism, 7)
    buckets = buckets_of(functions.words(texts), functions)
    rng = np.random.default_rng(1)
    counts = fixed_counts(held, buckets, mechanism, rng)
    expected = np.full((mechanism.hash_functions, mechanism.hash_buckets), 900_000 * mechanism.response.q)
    for clients, places in zip(held, buckets, strict=True):
        expected[np.arange(len(expected)), places] += clients * mechanism.response.contrast
    expected = expected.reshape(-1) / mechanism.hash_functions
    assert counts.sum() == 900_000
    for each in (counts, hashed_counts(held, texts, mechanism, 7, rng)):
        squares = (each - expected) ** 2 / expected
        assert abs(squares.mean() - 1) < 5 * np.sqrt(2 / len(squares)) + 0.002


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


@pytest.mark.parametrize("candidate", COVERED_UP)
def test_unlisted_texts_set_most_bits_of_a_candidate(candidate):
    mechanism = bloom_mechanism(8)
    texts = covering_texts(candidate, mechanism)
    filters = bloom_design([candidate, *texts], mechanism).toarray().astype(np.bool_).T
    of_candidate, of_texts = filters[0], filters[1:]
    assert len(texts) <= 5
    assert 2 * (of_candidate & of_texts.any(axis=0)).sum() > of_candidate.sum()
    assert not set(texts) & set(CANDIDATES)


@pytest.mark.slow
def test_candidates_with_covered_bits_are_flagged():
    """In a roll-up of 1,000 windows, where even small texts show. Nearly all others have intervals."""
    cell = covering_cell(8, 5_000_000_000, 2)
    assert (cell.unlisted, cell.share, cell.covered_up) == (10, 0.2, 1.0)
    assert cell.flagged < 0.02
    assert cell.covered > 0.9


@pytest.mark.all
def test_kind_has_a_row_for_each_cell():
    rows = hashed("local-hash", 1).rows
    assert len(rows) == 3 * len(REPORTS) * len(UNLISTED)
    assert {row["windows"] for row in rows} == {1}
    assert {str(row["mechanism"]).partition(",")[0] for row in rows} == {"local-hash"}


@pytest.mark.slow
def test_the_keys_of_a_cell_stay(monkeypatch):
    """Keys that estimates are made with: one for all windows, or one for each."""
    keys = []

    def decode_and_note(counts, candidates, mechanism, key):
        keys.append(key)
        return decode_hashed(counts, candidates, mechanism, key)

    monkeypatch.setattr("bench.estimators.text_coverage.decode_hashed", decode_and_note)
    cell = one_key_cell("local-hash, epsilon 4", 10_000, 0.2, 1, 3)
    assert cell.mechanism == "local-hash, epsilon 4, with one key"
    assert (len(keys), len(set(keys))) == (3, 1)
    hashed_cell("local-hash, epsilon 4", 10_000, 0.2, 1, 3)
    assert len(set(keys)) == 4


@pytest.mark.slow
def test_cells_of_both_kinds_are_estimated():
    for cell in (hashed_cell("local-hash, epsilon 4", 10_000, 0.2, 30, 3), bloom_cell(8, 10_000, 0.2, 1, 2)):
        assert 0.85 < cell.covered <= 1
        assert cell.least <= cell.first_percent <= 1


def test_section_has_what_all_cells_cover():
    cells = [
        TextCell("local-hash, epsilon 1", 1000, 0.2, 30, 2, 0.96, 0.9, 0.5, 0.0, 1.0),
        TextCell("local-hash, epsilon 2", 1000, 0.0, 0, 20, 0.92, 0.9, 0.6, 0.0, 1.0, 0.75),
    ]
    found = section_of(cells, functions_stay=True)
    first, second = (list(row.values()) for row in found.rows)
    assert first == [
        "local-hash, epsilon 1",
        1000,
        "20 % in 30",
        2,
        "96.0",
        "90.0",
        "50.0",
        "0.0",
        "",
        "100.0",
    ]
    assert second[2] == "none"
    assert second[-2:] == ["75.0", "100.0"]
    assert found.below == (
        "Covered 94.0 %, least cell 92.0 %, least candidate 50.0 %, of cells with 20 windows 60.0 %."
    )
    assert found.missed == ["a cell is covered below 93 %", "a candidate is covered below 80 %"]
    assert section_of(cells[:1], functions_stay=False).missed == []
