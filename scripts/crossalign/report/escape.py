"""The only ways in which data enter the page: as text, as inline JSON, as a link."""

import base64
import hashlib
import json
from html import escape
from urllib.parse import quote

# A script element ends at `</script` whatever its type, and `<!--` changes how the rest is read.
_JSON = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def text(value: object) -> str:
    """Text for the content of an element or for an attribute in double quotes."""
    return escape(str(value), quote=True)


def attributes(**values: object) -> str:
    """Attributes with a leading blank; `_` in a name stands for `-`, and None or an empty string leaves it out."""
    found = ((name.rstrip("_").replace("_", "-"), value) for name, value in values.items())
    return "".join(f' {name}="{text(value)}"' for name, value in found if value is not None and value != "")


def inline_json(data: object) -> str:
    """JSON that can stand inside a script element."""
    content = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return "".join(_JSON.get(letter, letter) for letter in content)


def link(path: str) -> str:
    """A relative path as an address; the leading dot keeps a colon from being read as a scheme."""
    return text(quote(path if path.startswith(".") else f"./{path}"))


def content_hash(content: str) -> str:
    """The name by which a content security policy knows an inline script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
