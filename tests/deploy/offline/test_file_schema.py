"""The JSON Schema of the collection file accepts what `load` accepts, as far as types go."""

import copy
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from deniable.deploy.offline.file_schema import file_schema
from deniable.deploy.start.init import COLLECTION_FILE
from tests.support.deploy.collection_texts import WHOLE

SCHEMA = file_schema()


def document(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def errors(found: Any) -> list[str]:
    return [error.message for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(found)]


def test_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("text", [COLLECTION_FILE, WHOLE])
def test_good_files_are_valid(text: str) -> None:
    assert errors(document(text)) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("epsilon", "much"),
        ("window_seconds", 1.5),
        ("epsilom", 1),
        ("mechanism", "krr"),
        ("name", "Plan"),
        ("values", "a"),
    ],
)
def test_wrong_fields_are_not(field: str, value: object) -> None:
    wrong = copy.deepcopy(document(COLLECTION_FILE))
    wrong["collections"][0][field] = value
    assert errors(wrong) != []


def test_fields_say_what_they_allow() -> None:
    described = SCHEMA["$defs"]["KRREntry"]["properties"]
    assert described["epsilon"]["description"] == "a number in (0, 16]"
    budget = SCHEMA["$defs"]["BudgetEntry"]["properties"]
    assert budget["epsilon"]["description"] == "a number in (0, inf)"
    assert "password" not in SCHEMA["$defs"]["SecuritySection"]["properties"]
