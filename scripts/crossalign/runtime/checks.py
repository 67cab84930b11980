"""What is wrong with keys and values, each fault in one sentence: the key, the value and what would be right."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel

# Pattern -> title: the schema has no titles of keys.
FORMS: dict[str, str] = {}
# Keys of earlier versions, whose new names nobody would guess.
RENAMED = {"adjustment": "pull"}
REASONS = {"too_short": ", at least one", "value_error": ", each only once"}


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema, without titles made from names. No key is required, as all have defaults somewhere."""
    from pydantic.json_schema import GenerateJsonSchema

    class Plain(GenerateJsonSchema):
        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    schema = model.model_json_schema(schema_generator=Plain)
    for part in (schema, *schema.get("$defs", {}).values()):
        del part["title"]
        part.pop("required", None)
        for inner in part["properties"].values():
            inner.pop("default", None)
    return schema


def wrong_keys(model: type[BaseModel], given: Any, whole: str) -> Iterator[str]:
    """Keys that do not exist or are missing, and values that are not allowed; `whole` is what all of it is called."""
    # Whoever only reads a config need not load pydantic.
    from pydantic import ValidationError

    try:
        model.model_validate(given)
    except ValidationError as error:
        schema, found = schema_of(model), {}
        for each in error.errors(include_url=False):
            found.setdefault(place_in(given, each), each)
        # What is none of several kinds is wrong in each of them; the innermost place says most.
        inner = [place for place in found if not any(other[: len(place)] == place != other for other in found)]
        for place in sorted(inner, key=lambda place: [str(part) for part in place]):
            yield describe(schema, place, found[place], whole)


def place_in(given: Any, error: dict) -> tuple:
    """The keys that lead to an error, without the names that pydantic gives to kinds of values."""
    place: list = []
    value: object = given
    for part in error["loc"]:
        known = part in value if isinstance(value, dict) else isinstance(part, int) and isinstance(value, list)
        if known and not (isinstance(part, int) and part >= len(value)):
            place.append(part)
            value = value[part]
    return (*place, error["loc"][-1]) if error["type"] == "missing" and isinstance(value, dict) else tuple(place)


def key_of(parts: Iterable[object]) -> str:
    """`finetune.pos.batch`, `seeds[2]`."""
    name = ""
    for part in parts:
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else str(part)
    return name


def describe(schema: dict, place: tuple, error: dict, whole: str) -> str:
    """One sentence for one error."""
    *outer, last = place or ("",)
    around = key_of(outer) or whole
    if error["type"] == "missing" and isinstance(last, str):
        return f"{around}: the key '{last}' is missing"
    if error["type"] == "extra_forbidden":
        known = {name for one in choices(schema, find(schema, outer)[0]) for name in one.get("properties", ())}
        if now := RENAMED.get(key_of((*outer, last))):
            return f"{around}: the key '{last}' is called '{now}' now"
        return f"{around}: unknown key '{last}'{suggestion(last, sorted(known))}"
    if error["loc"][-1:] == ("[key]",):
        return f"{around}: '{last}' is not allowed as a key; expected {keys(schema, find(schema, outer)[0], error)}"
    node, meaning = find(schema, place)
    expected = values(schema, node) + ("" if "title" in node else REASONS.get(error["type"], ""))
    told = f" ({meaning})" if meaning else ""
    return f"{key_of(place) or whole}: {error['input']!r} is not allowed; expected {expected}{told}"


def find(schema: dict, place: Iterable[object]) -> tuple[dict, str]:
    """The part of the schema at a place, and what the key means, or the nearest one around it."""
    node, meaning = schema, ""
    for part in place:
        inner = resolve(schema, next(filter(None, (inside(one, part) for one in choices(schema, node))), {}))
        # Pydantic drops the titles of values of mappings, whose own title speaks of them.
        node = ({"title": node["title"]} if node.get("type") == "object" and "title" in node else {}) | inner
        meaning = inner.get("description", meaning)
    return node, meaning


def inside(node: dict, part: object) -> dict | None:
    """The schema of a key or an entry."""
    if isinstance(part, int):
        return node.get("items")
    if part in node.get("properties", {}):
        return node["properties"][part]
    patterns = node.get("patternProperties", {})
    return next((one for pattern, one in patterns.items() if re.search(pattern, str(part))), None) or (
        node.get("additionalProperties") or None
    )


def choices(schema: dict, node: dict) -> list[dict]:
    """The kinds of values of which one is allowed."""
    return [resolve(schema, one) for one in node.get("anyOf", [node])]


def resolve(schema: dict, node: dict) -> dict:
    """A part of the schema with what it refers to."""
    return schema["$defs"][node["$ref"].rpartition("/")[2]] | node if "$ref" in node else node


def values(schema: dict, node: dict) -> str:
    """The values that are allowed, in words."""
    node = resolve(schema, node)
    if "title" in node:
        return node["title"]
    if "anyOf" in node:
        return " or ".join(values(schema, one) for one in node["anyOf"])
    if "enum" in node:
        return f"one of {', '.join(node['enum'])}"
    if "const" in node:
        return f"`{node['const']}`"
    if node.get("type") == "array":
        return f"a list, each {values(schema, node['items'])}"
    words = {"integer": f"a whole number{limits(node)}", "number": f"a number{limits(node)}"}
    words |= {"boolean": "true or false", "null": "null", "object": "a mapping"}
    return words.get(node.get("type"), "text")


def limits(node: dict) -> str:
    """` from 1`, ` above 0 and at most 1`."""
    if {"minimum", "maximum"} <= node.keys():
        return f" from {node['minimum']} to {node['maximum']}"
    names = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    told = [f"{word} {node[name]}" for name, word in names.items() if name in node]
    return f" {' and '.join(told)}" if told else ""


def keys(schema: dict, node: dict, error: dict) -> str:
    """The keys that a mapping may have, in words: its title, or the rule that a wrong key has broken."""
    rule = error.get("ctx", {})
    return node.get("title") or FORMS.get(rule.get("pattern")) or rule.get("expected") or values(schema, node)


def suggestion(name: str, allowed: list[str]) -> str:
    near = difflib.get_close_matches(str(name), allowed, n=1)
    return f"; did you mean '{near[0]}'?" if near else f"; allowed are {', '.join(allowed)}"
