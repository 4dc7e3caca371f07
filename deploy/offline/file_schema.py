"""The JSON Schema of the collection file, for editors; made from the classes that read it."""

from typing import Any

import msgspec

from deniable.config.section import nested
from deniable.config.sections import File
from deniable.config.words import words_of


def file_schema() -> dict[str, Any]:
    """Return the schema: names, types and ranges of fields. What fields allow together is not in it."""
    schema = msgspec.json.schema(File)
    for section in nested(File):
        described = schema["$defs"][section.__name__]["properties"]
        for field in msgspec.structs.fields(section):
            if field.name in section.only_environment:
                described.pop(field.name, None)  # a section may be in several others
            else:
                described[field.name]["description"] = words_of(field.type)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "deniable.yaml", **schema}
