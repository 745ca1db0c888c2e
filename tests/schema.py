"""Documents beside their schemas, and documents that are spoilt."""

from __future__ import annotations

import json
from typing import Any

from jsonschema.validators import validator_for

_validators: dict[int, Any] = {}


def validate(document: Any, schema: dict[str, Any]) -> None:
    """Whether a document fits a schema. jsonschema looks each time whether the schema is one: here once.

    Raises:
        jsonschema.ValidationError: it does not.
        jsonschema.SchemaError: the schema is none.
    """
    validator = _validators.get(id(schema))  # which keeps the schema, so no other one has its id
    if validator is None:
        kind = validator_for(schema)
        kind.check_schema(schema)
        validator = _validators[id(schema)] = kind(schema)
    validator.validate(document)


def changed(record: dict[str, Any], *keys: str | int, value: Any = None) -> dict[str, Any]:
    """A copy of a record as JSON has it, with one item replaced, or taken out if there is no value."""
    copy: dict[str, Any] = json.loads(json.dumps(record))
    inner: Any = copy
    for key in keys[:-1]:
        inner = inner[key]
    if value is None:
        del inner[keys[-1]]
    else:
        inner[keys[-1]] = value
    return copy
