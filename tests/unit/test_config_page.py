"""config/README.md is up to date, knows every key, and says what each one means."""

import re
import runpy

import pytest
import yaml

# Definitions that say what a value looks like, and nothing of what it is for.
SHAPES = ("lang", "langs", "name", "names", "treebank", "treebanks", "layers", "seeds", "positive", "share", "dropout")
# Entries with names of the user's choice.
OPEN = ("own_models", "own_vocabularies")


@pytest.fixture(scope="module")
def program(root):
    return runpy.run_path(str(root / "scripts" / "document_config.py"), run_name="program")


@pytest.fixture(scope="module")
def schema(root):
    return yaml.safe_load((root / "resources" / "schemas" / "config.schema.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page(root):
    return (root / "config" / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def table(page):
    """(section, key) -> the cells of its row."""
    found = {}
    for part in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        section = part.partition("\n")[0]
        for line in part.splitlines():
            if line.startswith("| `"):
                key, *cells = (cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|")))
                assert (section, key.strip("`")) not in found
                found[section, key.strip("`")] = cells
    return found


def leaves(value, path=()):
    """Every key of a config, mappings included."""
    for key, inner in value.items():
        yield (*path, key)
        if isinstance(inner, dict):
            yield from leaves(inner, (*path, key))


def test_the_page_is_up_to_date(program, schema, page, root):
    made = program["document"](schema, (root / "config.yaml").read_text(encoding="utf-8"))
    assert page == made, "run: python scripts/document_config.py"


def test_every_key_of_the_config_is_there(program, table, root):
    config = yaml.safe_load((root / "config.yaml").read_text(encoding="utf-8"))
    sections = {section for section, _ in table}
    for path in leaves(config):
        if path[0] not in sections:
            assert ("The run", path[0]) in table
        elif len(path) > 1:
            shown = [(path[0], ".".join(path[1:length])) for length in range(len(path), 1, -1)]
            nearest = next((row for row in shown if row in table), None)
            # A treebank of a language, or a preset's setting, is part of the mapping's row.
            assert nearest, f"{'.'.join(path)} is not on the page"
            assert nearest == shown[0] or table[nearest][1] != program["FOLLOWS"], (
                f"{'.'.join(path)} is not on the page"
            )


def test_every_key_of_the_schema_is_there(table, schema):
    for key, part in schema["properties"].items():
        if key in OPEN:
            definition = schema["$defs"][part["additionalProperties"]["$ref"].rpartition("/")[2]]
            names = [f"<name>.{name}" for name in definition["properties"]]
        else:
            names = list(part.get("properties", {}))
        assert names or ("The run", key) in table
        assert {(key, name) for name in names} <= table.keys()


def test_every_row_says_what_the_key_means(table, schema):
    shapes = {schema["$defs"][name]["description"].lower() for name in SHAPES}
    for row, (meaning, values, _) in table.items():
        assert meaning and values, row
        assert meaning.partition("<br>")[0].lower() not in shapes, f"{row}: a title in the schema would say more"


@pytest.mark.parametrize(
    ("row", "values", "default"),
    [
        (("The run", "seeds"), "a list, each a whole number from 1", "`[1, 2, 3, 4, 5]`"),
        (("downloads", "attempts"), "a whole number from 1 to 20", "`5`"),
        (("downloads", "offline"), "`true` or `false`", "`false`"),
        (("align-predict", "grid.batch"), "a list, each a whole number from 1", "`[16, 32]`"),
        (("mlm", "learning_rate"), "a number above 0 and at most 1", "`5.0e-5`"),
        (("align-predict", "test_treebanks"), None, "`{ sl: sl_ssj }`"),
        (("adjust", "tasks"), "a list of some of `nli`, `ner`, `qa`", "`[nli, ner, qa]`"),
        (("finetune", "defaults.betas"), "a list of 2, each a number from 0 and below 1", "`[0.9, 0.999]`"),
        (("finetune", "adjust-qa"), "as `defaults`", None),
        (("own_models", "<name>.attention_dropout"), "a number from 0 and below 1 or `null`", ""),
    ],
)
def test_values_and_defaults(table, row, values, default):
    _, shown_values, shown_default = table[row]
    assert values in (None, shown_values)
    assert default in (None, shown_default)


def test_notes_of_the_config_stand_beside_their_keys(table):
    assert table["align-predict", "sources"][0].endswith("<br>AP 3")
    assert "table 3 (AP A.1.1)" in table["align-predict", "grid"][0]
    assert "AP A.1.1" not in table["align-predict", "grid.batch"][0]
    assert "the authors' checkpoints; pretrain" in table["anc", "norm_models"][0]
