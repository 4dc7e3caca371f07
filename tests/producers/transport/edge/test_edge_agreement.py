"""A producer compares with the edge's list at the start, regularly and after a 409."""

import json
from base64 import b64decode
from dataclasses import replace

import pytest

from deniable.config.settings.edge_address import EdgeAddress
from deniable.edge.collection_list import collection_list
from deniable.edge.signing_key import parse_signing_key
from deniable.producers.concurrency.timing import ProducerTiming
from deniable.producers.errors import DeliveryError, HopelessError
from deniable.producers.transport.edge.agreement import EdgeAgreement
from deniable.producers.transport.edge.answers import HttpAnswer
from tests.support.brokers.log_lines import messages
from tests.support.messages import PinMessages
from tests.support.paths import VECTORS
from tests.support.producers.questions import FREE

KEY = parse_signing_key(json.loads((VECTORS / "collection_list.json").read_text())["signing_key"].encode())
COLLECTIONS = [each.collection for each in FREE]
URL = "https://edge.example"
MINUTES = ProducerTiming(comparison=60.0)


class Connection:
    """Serves one list, with its ETag."""

    def __init__(self, allowances=FREE):
        self.found = collection_list(1, allowances, 10, KEY)
        self.etags = []
        self.instead = None

    def get(self, _path, _most_bytes, etag):
        self.etags.append(etag)
        if isinstance(self.instead, Exception):
            raise self.instead
        if self.instead:
            return self.instead
        if etag == self.found.etag:
            return HttpAnswer(304, {}, b"")
        return HttpAnswer(200, {"etag": self.found.etag}, self.found.body)


def changed():
    first, *others = FREE
    other = replace(first, collection=replace(first.collection, window_seconds=120))
    return (other, *others)


def test_the_same_list_is_not_sent_again():
    connection, agreement = Connection(), EdgeAgreement(COLLECTIONS, EdgeAddress(URL), MINUTES)
    assert agreement.due == 0.0
    agreement.compare(connection)
    agreement.compare(connection)
    assert connection.etags == ["", connection.found.etag]
    assert agreement.differing == {}


def test_what_changes_is_logged_once(caplog, pin_messages: PinMessages) -> None:
    caplog.set_level("INFO")
    connection, agreement = Connection(changed()), EdgeAgreement(COLLECTIONS, EdgeAddress(URL), MINUTES)
    agreement.compare(connection)
    agreement.compare(connection)
    connection.found = Connection().found
    agreement.compare(connection)
    assert agreement.differing == {}
    rejected, accepted = messages(caplog)
    assert "carrier" in rejected
    pin_messages({"the edge has the parameters again": lambda: accepted})


def test_a_rejection_asks_anew_soon_and_the_answer_counts():
    connection, agreement = Connection(), EdgeAgreement(COLLECTIONS, EdgeAddress(URL), MINUTES)
    agreement.compare(connection)
    later = agreement.due
    agreement.rejected(COLLECTIONS[0].fingerprint)
    assert agreement.due < later - 50
    assert list(agreement.differing) == ["carrier"]
    agreement.rejected(12345)
    agreement.compare(connection)
    assert agreement.differing == {}


@pytest.mark.parametrize(
    "answer", [HttpAnswer(404, {}, b""), HttpAnswer(200, {}, b"<html>")], ids=["404", "HTML"]
)
def test_without_a_key_an_unreadable_list_prevents_nothing(answer, caplog, pin_messages: PinMessages) -> None:
    caplog.set_level("INFO")
    connection, agreement = Connection(), EdgeAgreement(COLLECTIONS, EdgeAddress(URL), MINUTES)
    connection.instead = answer
    agreement.compare(connection)
    agreement.compare(connection)
    assert agreement.may_send
    pin_messages({"the list is unreadable": lambda: "\n".join(messages(caplog))})


def test_with_a_key_nothing_is_sent_before_the_list_is_checked(pin_messages: PinMessages) -> None:
    edge = EdgeAddress(URL, None, KEY.public_key)
    assert edge.key == b64decode(KEY.public_key)
    connection, agreement = Connection(), EdgeAgreement(COLLECTIONS, edge, MINUTES)
    connection.instead = DeliveryError("away")
    for _ in range(2):
        with pytest.raises(DeliveryError, match="away"):
            agreement.compare(connection)
        assert (agreement.may_send, agreement.due) == (False, 0.0)
    body = connection.found.body.replace(b'\\"revision\\":1', b'\\"revision\\":2')
    connection.instead = HttpAnswer(200, {}, body)
    pin_messages({"the list is signed by another key": lambda: agreement.compare(connection)})
    assert not agreement.may_send
    connection.instead = None
    agreement.compare(connection)
    assert agreement.may_send
    connection.instead = HttpAnswer(404, {}, b"")  # a proxy that is being changed
    agreement.compare(connection)
    assert agreement.may_send
    connection.instead = HttpAnswer(200, {}, body)
    with pytest.raises(HopelessError):
        agreement.compare(connection)
    assert not agreement.may_send
