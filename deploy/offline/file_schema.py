"""The JSON Schema of the collection file, for editors; made from the classes that read it."""

from typing import Any

import msgspec

from deniable.config.allowed_values import allowed
from deniable.config.sections import SECRETS, File


def file_schema() -> dict[str, Any]:
    """Return the schema. It knows names and types of fields; ranges are in its descriptions."""
    schema = msgspec.json.schema(File)
    for secret in SECRETS:
        schema["$defs"]["SecuritySection"]["properties"].pop(secret)  # only the environment may set it
    for name, definition in schema["$defs"].items():
        for field, described in definition.get("properties", {}).items():
            if name != "SecuritySection" and (words := allowed(field, in_budget=name == "BudgetEntry")):
                described["description"] = words
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "deniable.yaml", **schema}
