"""Every key of the config: its name, the values that it takes and what it means, once.

The config check, the schema for editors (resources/schemas) and config/README.md are made from these classes. Keys of
trainings are those of `engine/settings.py`. A title says which values are allowed where bounds do not say it, a
description what the key means.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model

from crossalign.catalog.papers import papers
from crossalign.data.columns import COLUMNS
from crossalign.engine import settings as engine
from crossalign.engine.settings import Section, keys_of
from crossalign.runtime.checks import FORMS, schema_of

Item = TypeVar("Item")


def key(description: str, **more: Any) -> Any:
    """A key, and what it means."""
    return Field(description=description, **more)


def like(pattern: str, title: str) -> Any:
    """Text of a certain form."""
    FORMS[pattern] = title
    return Annotated[str, Field(pattern=pattern, title=title)]


def each_once(values: list) -> list:
    if any(value in values[:place] for place, value in enumerate(values)):
        raise ValueError("an entry comes twice")
    return values


Distinct = Annotated[list[Item], AfterValidator(each_once), Field(json_schema_extra={"uniqueItems": True})]
Some = Annotated[list[Item], AfterValidator(each_once), Field(min_length=1, json_schema_extra={"uniqueItems": True})]
Text = Annotated[str, Field(min_length=1)]
Lang = like("^[a-z]{2,3}$", "a language code of resources/languages.tsv")
Name = like("^[a-z0-9][a-z0-9._-]*$", "a model name of resources/models.tsv")
Treebank = like("^[a-z]{2,3}_[a-z0-9]+$", "a treebank such as en_ewt")
Treebanks = Annotated[dict[Lang, Treebank], Field(title="for each language code a treebank such as en_ewt")]
Layers = like("^(all|[0-9]+(-[0-9]+)?)$", 'layers such as "1-2", "5" or "all", counted from 1')
Pairs = like("^[0-9]+k?$", "a number of sentence pairs such as 30k or 500")
Positive = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(**engine.RATE)]
Seeds = Annotated[Some[Positive], Field(title="a list of whole numbers from 1, at least one")]
Paper = Literal[tuple(papers())]
LABELLED_COLUMNS = tuple(sorted({"id"}.union(*COLUMNS.values())))
# `mix` is of a published run (docs/results/pretrained-here); its sources are read no more.
TextSource = Literal["open", "cc100", "wikipedia", "mix"]


class Downloads(Section):
    """Where files come from and go to."""

    folder: Text = key("the folder of downloaded files")
    lock: Text = key("the file that remembers checksums seen first")
    mirror: like("^(https?|file)://.", "an address that starts with https:// or file://") | None = key(
        "address of a mirror, which is asked before the original addresses"
    )
    mirror_checksums: Literal["register", "mirror"] = key("whose checksums hold for files of the mirror")
    offline: bool = key("whether no network may be touched")
    attempts: int = key("tries per file", ge=1, le=20)


Pattern = like(
    r"^([^-{}]|\{lang\})([^{}]|\{lang\})*$",
    "a name below the repository or folder; * stands for anything, {lang} for the language",
)
Label = like("^[^-=][^=]*$", "a label without = and without a dash in front")


class LabelledSet(Section):
    """A labelled data set of the hub or in a folder, one set for each of its languages."""

    hub: like(r"^\w[\w.-]*/[\w.-]+$", "<owner>/<name> of a data set of the hub") = key(
        "the data set on the hub", default=None
    )
    revision: like(r"^\w[\w./-]*$", "a commit, or a branch such as refs/convert/parquet") = key(
        "its commit, or a branch whose commit is locked at first sight", default=None
    )
    folder: like("^[^-~{}][^{}]*$", "a path without braces that does not begin with - or ~") = key(
        "the folder that holds it, where it is not on the hub", default=None
    )
    licence: Text = key("short name of its licence", default="not-stated")
    task: Literal["ner", "pos", "nli", "qa"] = key("the task that it is for")
    languages: Some[Lang] | Annotated[dict[Lang, Text], Field(min_length=1)] = key(
        "its languages; a mapping says what {lang} stands for where it is not the code",
        title="a list of codes of resources/languages.tsv, or for each code what the set itself calls the language",
    )
    splits: Annotated[dict[Literal["train", "dev", "test"], Pattern], Field(min_length=1)] = key(
        "the files of each split: parquet, JSON lines, CSV or TSV",
        title="for some of train, dev, test a pattern of files",
    )
    columns: dict[Literal[LABELLED_COLUMNS], Text] = key(
        "the columns, where they are not called as usual",
        default={},
        title=f"for some of {', '.join(LABELLED_COLUMNS)} a column",
    )
    labels: Some[Label] | dict[Label, Label] = key(
        "names of the labels 0, 1, 2, …, or what each label stands for", default=None
    )


class Domains(Section):
    """Study of domains."""

    train: Treebank = key("treebank that the models of the domain study are trained on")
    test: Annotated[list[Treebank], Field(min_length=1)] = key("treebanks that they are tested on")
    ner: Some[like("^[a-z0-9]+_[a-z]{2,3}$", "an NER set such as wikiann_en")] = key(
        "sets that the English NER models are tested on"
    )


class GridSeeds(Section):
    """Seeds per setting."""

    parsing: Positive = key("seeds per setting, parsing")
    pos: Positive = key("seeds per setting, POS tagging")
    ner: Positive = key("seeds per setting, NER")


class Grid(Section):
    """Search for hyper-parameters."""

    batch: Annotated[list[Positive], Field(min_length=1)] = key("batch sizes to try")
    learning_rate: Annotated[list[Rate], Field(min_length=1)] = key("learning rates to try")
    seeds: GridSeeds


class Search(Section):
    """Values to try for every initialisation."""

    batch: Some[Positive] = key("batch sizes to try", default=None)
    learning_rate: Some[Rate] = key("learning rates to try", default=None)


class Lacking(Section):
    """What a task has no data for."""

    sources: dict[Literal["parsing", "pos", "ner"], Some[Lang]] = key("source languages without a training set")
    languages: dict[Literal["parsing", "pos", "ner"], Some[Lang]] = key("target languages without a test set")


class AlignPredict(Section):
    """The study of layers."""

    languages: Some[Lang] = key("target languages that models are tested on")
    extra_targets: Distinct[Lang] = key("languages shown but left out of means")
    sources: Some[Lang] = key("source languages that models are fine-tuned on")
    lacking: Lacking
    base: Name | Some[Name] = key("the model under study; of a list, the pretrainings that seeds take in turn")
    treebanks: Treebanks = key("treebank that a source is trained on")
    test_treebanks: Treebanks = key("treebank to test on where it is not PUD")
    layer_pairs: Some[Layers] = key("sets of layers that RANDOM-INIT re-initialises in the main tables")
    layer_sets: Some[Layers] = key("further sets of layers to re-initialise")
    own_treebanks: Treebanks = key("treebank of a language that is trained and tested on itself")
    domains: Domains
    similarity_languages: Some[Lang] = key("languages whose similarity with English is drawn by layer")
    grid: Grid
    search_per_init: bool | Search = key(
        "whether batch size and learning rate are searched for every initialisation",
        title="false, true (the grid above), or lists of values to try: learning_rate, batch or both",
    )


class Anc(Section):
    """The study of similarity indexes."""

    norm_models: Literal["public", "pretrain"] = key("where the models that differ in normalisation come from")
    schemes: Some[Name] = key("models that differ in normalisation only")
    second_normformer: Name = key("a NormFormer model of another training")
    norm_languages: Some[Lang] = key("languages compared with English in those models")
    xnli_languages: Some[Lang] = key("languages of the XNLI table")
    trained_on: Literal["multinli_en", "mix_en"] = key("the set of the NLI models; mix_en: resources/mixtures.tsv")
    known_models: Some[Name] = key("published models of similar size")
    known_languages: Some[Lang] = key("languages compared with English in the published models")
    scaling_languages: Some[Lang] = key("languages compared with English in the models of growing size")
    xlmr: Some[Name] = key("XLM-R models from small to large")
    xglm: Some[Name] = key("XGLM models from small to large")
    sentences: int = key("parallel sentences that similarities are measured on", ge=2, le=15001)
    pretraining_sentences: int = key("sentences of all pretraining languages together", ge=4)
    seeds: Seeds = key("seeds of the fine-tuned models")


class Sizes(Section):
    """Study of the number of sentence pairs."""

    lang: Lang = key("language of the study of sizes")
    pairs: Some[Pairs] = key("numbers of sentence pairs to compare")


class Aggregations(Section):
    """Study of sub-word aggregation."""

    lang: Lang = key("language of the study of sub-word aggregation")
    values: Some[engine.Aggregation] = key("aggregations to compare")


class TokenChoices(Section):
    """Study of the tokens that are aligned."""

    lang: Lang = key("language of the study of aligned tokens")
    values: Some[engine.Tokens] = key("choices of tokens to compare")


class Extended(Section):
    """Study of a model that was pretrained further on one language."""

    base: Name = key("a model that was pretrained further on one language")
    lang: Lang = key("that language")
    pairs: Some[Pairs] = key("numbers of sentence pairs to compare")


class TrainedOn(Section):
    """English sets to fine-tune on; mix_en: the sources of resources/mixtures.tsv."""

    nli: Literal["multinli_en", "mix_en"] = key("set for NLI")
    ner: Literal["wikiann_en"] = key("set for NER")
    qa: Literal["squad_en"] = key("set for QA")


class Adjust(Section):
    """The study of cross-lingual adjustment."""

    languages: Some[Lang] = key("languages that mBERT is adjusted to")
    base: Name | Some[Name] = key("the model that is adjusted; of a list, the pretrainings that seeds take in turn")
    tasks: Some[Literal["nli", "ner", "qa"]] = key("tasks to fine-tune on")
    trained_on: TrainedOn
    qa: Some[Literal["xquad", "mlqa", "tydiqa"]] = key("the test sets of QA")
    bitext: Literal["wikimatrix", "mix"] = key("the source of sentence pairs")
    pool: Positive = key("sentence pairs per language that are word-aligned")
    max_words: Positive = key("longest sentence, in words")
    pairs: Pairs = key("sentence pairs of an adjustment")
    aggregation: engine.Aggregation = key("how sub-words make a word's vector")
    tokens: engine.Tokens = key("which tokens are pulled together")
    sizes: Sizes
    aggregations: Aggregations
    token_choices: TokenChoices
    translated: Some[Lang] = key("languages with a translated SQuAD to train on")
    extended: Extended
    further_alpha_scopes: Distinct[engine.AlphaScope] = key(
        "readings of alpha that tables 2 to 4 show beside that of pull.continual.alpha_scope"
    )
    word_pairs: Positive = key("word pairs of each kind in a panel of distances")
    coin_seed: int = key("the seed of the coin of mixed-language XNLI", ge=0)
    seeds: Seeds | None = key("seeds of the adjusted and fine-tuned models; null: those of the run")


class Talk(Section):
    """The study of unseen languages."""

    base: Name | Some[Name] = key("the model under study; of a list, the pretrainings that seeds take in turn")
    profile_languages: Some[Lang] = key("languages whose models are trained: figures 2 and 3, table 4")
    languages: Some[Lang] = key("languages that the model has not seen")
    read_languages: Distinct[Lang] = key("languages left out because the model has read them", default=[])
    treebanks: Treebanks = key("treebank of a language")
    folded: Distinct[Treebank] = key("treebanks without a training set, cut into five folds")
    ner: Distinct[Lang] = key("languages with NER data")
    transliterated: dict[Literal["ug", "ckb", "xmf", "mhr", "bxr"], Some[Literal["parsing", "pos", "ner"]]] = key(
        "tasks for each transliterated language",
        title="for some of ug, ckb, xmf, mhr, bxr a list of some of parsing, pos, ner",
    )
    transliterated_seen: Distinct[Literal["ar", "ru", "ja"]] = key("seen languages that are transliterated")
    text: dict[Lang, Literal["wikipedia", "cc100", "narabizi", "open"]] = key(
        "the source of a language's raw text where it is not Wikipedia",
        title="for each language code one of wikipedia, cc100, narabizi, open",
    )


class StudiedModel(Section):
    """A model of a study: in a folder, on the hub, or by a name of resources/models.tsv or `pretrain.models`."""

    folder: Text = key("the folder with config.json, safetensors and tokenizer.json", default=None)
    hub: like(r"^[\w.-]+/[\w.-]+$", "a repository such as Qwen/Qwen3-0.6B-Base") = key(
        "the repository of the Hugging Face hub", default=None
    )
    revision: Text = key("the commit of the repository", default=None)
    layers: Positive = key("how many layers it has; `make study` writes it", default=None)
    neurons: Positive = key("how many neurons a layer has; `make study` writes it", default=None)
    licence: Text = key("its licence", default=None)


Studied = like(r"^[a-z0-9][a-z0-9._]*(-[a-z0-9._]+)*$", "a name of the letters a-z, digits, dots, _ and single dashes")


class Study(Section):
    """A run with another base model than the papers' (docs/use/study.md)."""

    models: dict[Studied, StudiedModel] = key("the base model, by the name that tables show; `make study` writes it")
    read_languages: dict[Name, Distinct[Lang]] = key(
        "languages of the talk that models have read, and which are left out for them",
        title="for some models a list of language codes",
        default={},
    )
    beside: Distinct[Name] = key("models that `anc` compares with the base model", default=[])


class Aligner(Section):
    """Word alignment."""

    program: Literal["builtin", "fast_align"] = key("the word aligner")
    symmetrise: Literal["intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"] = key(
        "how the two directions are joined"
    )


def section(name: str, doc: str, base: type[BaseModel] = Section, **keys: Any) -> type[BaseModel]:
    return create_model(name, __base__=base, __doc__=doc, **keys)


Preset = section("Preset", "Hyper-parameters of a fine-tuning.", **keys_of(engine.Settings))


class Finetune(Section):
    """Hyper-parameters of fine-tuning: `defaults` and presets, each of which says what differs. Any name that ends in a
    task may be added."""

    model_config = ConfigDict(extra="allow", alias_generator=lambda name: name.replace("_", "-"))
    __pydantic_extra__: dict[str, Preset]

    defaults: Preset = key("what holds for all presets")
    parsing: Preset = key("parsing in align-predict")
    pos: Preset = key("POS tagging in align-predict")
    ner: Preset = key("NER in align-predict")
    unseen_parsing: Preset = key("parsing of unseen languages in the talk")
    unseen_pos: Preset = key("POS tagging of unseen languages")
    unseen_ner: Preset = key("NER of unseen languages")
    anc_nli: Preset = key("NLI in anc")
    adjust_nli: Preset = key("NLI in adjust")
    adjust_ner: Preset = key("NER in adjust")
    adjust_qa: Preset = key("QA in adjust")


# How many pairs are pulled together, and how, is said by the items.
PULLED = tuple(keys_of(engine.Pulling))
Continual = section("Continual", "Continual learning.", **keys_of(engine.ContinualSettings, without=PULLED))
Pull = section(
    "Pull",
    "Hyper-parameters of an adjustment, which pulls linked words together.",
    **keys_of(engine.AdjustmentSettings, without=PULLED),
    continual=(Continual, ...),
)
Mlm = section(
    "Mlm",
    "Masked language modelling of a published model, continued on the text of one language.",
    **keys_of(engine.PretrainSettings, without=("steps", "exponent", "dev_every")),
    epochs=(float, key("passes over the texts", gt=0)),
)


class Trained(Section):
    """What models and vocabularies that are trained here share."""

    text: TextSource | Some[TextSource] = key("the source of its texts, or several sources", default=None)
    languages: Some[Lang] = key("its languages", default=None)


class Letters(Section):
    """Letters that a vocabulary has, whatever its own texts are."""

    text: TextSource = key("the source of the texts")
    languages: Some[Lang] = key("the languages whose letters get pieces")


Vocabulary = section(
    "Vocabulary",
    "A vocabulary that is made here.",
    Trained,
    **keys_of(engine.VocabularySettings),
    letters=(Letters, key("further languages, of which it has the letters alone", default=None)),
)
Stage = section(
    "Stage",
    "A further training of the model, from the weights of the stage before. What is not given stays as it was.",
    Trained,
    **keys_of(engine.PretrainSettings, engine.PretrainOptions, without=("tuning_dropout", "store")),
)
Model = section(
    "Model",
    "A model that is pretrained here.",
    Trained,
    vocabulary=(
        like(r"^[a-z0-9][a-z0-9._-]*(-\*)?$", "a name of `pretrain.vocabularies` or of resources/models.tsv"),
        key("its vocabulary, or the model whose vocabulary it shares", default=None),
    ),
    **keys_of(engine.ModelShape, engine.PretrainSettings, engine.PretrainOptions, without=("positions",)),
    seed=(Positive, key("seed of weights and order", default=None)),
    stages=(list[Stage], key("further trainings, one after another", default=None)),
    as_published=(bool, key("whether it is trained as in the paper, so that its numbers are judged", default=None)),
)
Entry = like(
    r"^([a-z0-9][a-z0-9._]*(-[a-z0-9._]+)*|mono-\*)$",
    "mono-*, or a name of the letters a-z, digits, dots, _ and single dashes",
)


class Pretrain(Section):
    """Vocabularies and models that are trained here. `mono-*` stands for one model of each language of `talk`."""

    overlap: int = key(
        "words in a row of an evaluation set that no text of pretraining may have; 0: texts are left as they are", ge=0
    )
    vocabularies: dict[Entry, Vocabulary] = key("`defaults` and one entry per vocabulary, which says what differs")
    models: dict[Entry, Model] = key("`defaults` and one entry per model, which says what differs")


Bilstm = section(
    "Bilstm",
    "The baseline without pretraining.",
    **keys_of(engine.Sizes, engine.BilstmSettings),
)


class Similarity(Section):
    """Similarity indexes."""

    index: Literal["cka", "cka-uncentred", "cka-rbf"] = key("which CKA align-predict is measured by")
    svcca_directions: Positive = key("singular directions that SVCCA keeps")
    control: Literal["length", "none"] = key(
        "whether CKA and ANC also come without what the length of sentences explains"
    )
    draw_control: bool = key(
        "whether figures also show each similarity with sentence length taken out, as a dotted line", default=False
    )


class Rehearsal(Section):
    """The run at its full size with cut trainings (docs/use/rehearsal.md). Nothing in it is judged."""

    steps: int = key("steps of each training that are done; the time of the others is extrapolated", ge=2)
    max_parameters: Positive = key("models with more parameters are left out")


class Config(Section):
    """A config.yaml with all that is merged over it."""

    extends: Text = key(
        "the config that a file is laid over",
        title="a config of the project, such as demo, or a path beside the file",
        default=None,
    )
    run: like("^[A-Za-z0-9][A-Za-z0-9._-]*$", "a folder name below results/") = key(
        "name of the run and of the folder of its results"
    )
    papers: Some[Paper] = key("the papers to reproduce")
    items: Literal["all"] | Some[str] = key(
        "tables and figures to make", title="`all`, or a list of items such as align-predict/table1"
    )
    replaced: dict[Paper, Annotated[list[Text], Field(min_length=1)]] = key(
        "what stands for data that cannot be had",
        title="for each study a list: what stands for what, and why",
    )
    replaced_file: Text = key("a file with more of the same, in the repository", default=None)
    skip: dict[str, Text] = key("items that are left out", title="for each item the reason why it cannot be made")
    reasons: dict[like("^[a-z][a-z0-9-]*$", "a finding such as anc-deep"), Text] = key(
        "why findings do not come out in this run",
        title="for each finding the reason",
        default={},
    )
    reasons_file: Text = key("a file with more of the same, in the repository", default=None)
    seeds: Seeds = key("seeds of the runs whose mean is reported")
    ner_sentences: Positive | None = key("sentences of a dev or test set of NER at most; null: all")
    downloads: Downloads
    datasets: dict[str, LabelledSet] = key(
        "labelled data sets of your choice: the Wolof set of the entry `mine` is mine_wo (wo_mine for POS tags)",
        default={},
    )
    world: Text = key("settings of the demo world that serves as mirror", default=None)
    models: Annotated[Text, Field(title="`hub`, `package`, or a folder with one folder per model")] = key(
        "where the models come from"
    )
    backend: Literal["auto", "own", "library"] = key(
        "what computes the models: our encoder, the library, or auto: ours where it knows the shape", default="auto"
    )
    backends: dict[Name, Literal["auto", "own", "library", "bidirectional"]] = key(
        "what computes single models, where that is another; bidirectional: the library, and the decoder that is "
        "trained sees both sides",
        title="for each model auto, own, library or bidirectional",
        default={},
    )
    keep_models: Literal["all", "ref", "none"] = key("which fine-tuned models stay on disk after their last use")
    align_predict: AlignPredict = Field(alias="align-predict")
    anc: Anc
    adjust: Adjust
    talk: Talk
    study: Study = Field(default=None)
    rehearsal: Rehearsal = Field(default=None)
    aligner: Aligner
    finetune: Finetune
    pull: Pull
    mlm: Mlm
    pretrain: Pretrain
    bilstm: Bilstm
    similarity: Similarity


# The section of a further paper is free: only its items read it, and where the paper is not chosen it may be absent.
FREE = [name for name in papers() if name.replace("-", "_") not in Config.model_fields]
if FREE:
    sections = {name.replace("-", "_"): (dict[str, Any], Field(alias=name, default={})) for name in FREE}
    Config = create_model("Config", __base__=Config, **sections)


def json_schema() -> dict[str, Any]:
    """The schema of a config file."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema_of(Config)}
