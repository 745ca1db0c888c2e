"""`validate` of jsonschema, which looks each time whether the schema is one: here it does so once."""

from __future__ import annotations

from typing import Any

from jsonschema.validators import validator_for

_validators: dict[int, Any] = {}


def validate(document: Any, schema: dict[str, Any]) -> None:
    """Whether a document fits a schema.

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
