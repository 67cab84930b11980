"""What programs are told as JSON or in a file: options and hyper-parameters."""

import argparse
import json

import pytest

from crossalign.engine.settings import PretrainOptions, PretrainSettings, checked
from crossalign.runtime.command import read_args
from crossalign.runtime.errors import UserError


def read(monkeypatch, *words, settings=False):
    monkeypatch.setattr("sys.argv", ["program", *map(str, words)])
    parser = argparse.ArgumentParser()
    parser.add_argument("--lang", required=True)
    parser.add_argument("--rows", type=int, default=5)
    parser.add_argument("--mixed", action="store_true")
    parser.add_argument("--labels", nargs="+")
    return read_args(parser, settings)


def test_options_come_from_json_a_file_or_the_command_line(monkeypatch, tmp_path):
    told = {"lang": "wo", "rows": 0, "mixed": True, "labels": ["a b", "=c"]}
    (tmp_path / "a.json").write_text(json.dumps(told))
    (tmp_path / "a.yaml").write_text("lang: wo # Wolof\nrows: 0\nmixed: true\nlabels: [a b, =c]\n")
    for source in (json.dumps(told), tmp_path / "a.json", tmp_path / "a.yaml"):
        args = read(monkeypatch, "--settings", source)
        assert {name: getattr(args, name) for name in told} == told
    args = read(monkeypatch, "--rows", "7", "--settings", '{"lang": "wo", "mixed": false}', '{"rows": 3}')
    assert (args.rows, args.mixed, args.settings) == (7, False, {})


def test_what_is_no_option_is_refused_or_left_to_the_program(monkeypatch, tmp_path):
    (tmp_path / "a.yaml").write_text("lang: wo\nbatch: 8\n")
    with pytest.raises(UserError, match=r"a.yaml: unknown option 'batch'; there are labels, lang, mixed, rows$"):
        read(monkeypatch, "--settings", tmp_path / "a.yaml")
    args = read(monkeypatch, "--settings", tmp_path / "a.yaml", settings=True)
    assert (args.settings, args.place) == ({"batch": 8}, f"--settings {tmp_path}/a.yaml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", "a.yaml: neither JSON nor YAML: while parsing"),
        ("- 1", "a.yaml: expected names with values, found [1]"),
    ],
)
def test_a_file_that_gives_no_settings_is_told_in_one_line(monkeypatch, tmp_path, text, words):
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(UserError) as told:
        read(monkeypatch, "--lang", "wo", "--settings", tmp_path / "a.yaml")
    assert words in str(told.value) and "\n" not in str(told.value)
    with pytest.raises(UserError, match=r"^--settings no.json: cannot read: No such file or directory$"):
        read(monkeypatch, "--settings", "no.json")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"epoch": 3}, "the settings: unknown key 'epoch'; did you mean 'epochs'?"),
        ({"seed": 3}, "the settings: unknown key 'seed'; allowed are attention_dropout, batch"),
        ({"batch": 0}, "batch: 0 is not allowed; expected a whole number from 1 (blocks per step)"),
        ({"masking": 1.5}, "masking: 1.5 is not allowed; expected a number above 0 and below 1 (share of masked"),
        (
            {"betas": [0.9]},
            "betas: [0.9] is not allowed; expected a list of two numbers, each from 0 and below 1 (decay",
        ),
        ({"learning_rate": "5e-5"}, "learning_rate: '5e-5' is not allowed; expected a learning rate above 0 and at"),
    ],
)
def test_wrong_settings_are_told_in_one_line(values, words):
    with pytest.raises(UserError) as told:
        checked(values, PretrainSettings, PretrainOptions, place="--settings a.yaml")
    assert str(told.value).startswith("--settings a.yaml: ") and "\n" not in str(told.value)
    assert words in str(told.value)
