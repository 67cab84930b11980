"""Helpers of the rules that make, score and look into models: which files a job reads, and its options. No rules."""


def embed_options(corpus, run):
    """`align-predict`: without special tokens, at most 200 sub-words; `anc`: with them, at most 100."""
    if corpus == "pud":
        return options(special_tokens="exclude", max_length=200)
    return options(special_tokens="include", max_length=100, last_layer="cls" if isinstance(run, Tuned) else None)


def embed_inputs(wildcards):
    run = run_at(wildcards.address)
    languages = wanted_languages(CATALOG, run, wildcards.corpus)
    text = [f"{RESULTS}/data/parallel/{wildcards.corpus}/{lang}.txt" for lang in languages]
    return {"text": text} | embedded_model(run)


def compared_languages(wildcards):
    """The languages that some table or figure compares with English in a model."""
    languages = wanted_languages(CATALOG, run_at(wildcards.address), wildcards.corpus)
    return [lang for lang in languages if lang != "en"]


def compared_indexes(wildcards):
    return wanted_indexes(CATALOG, run_at(wildcards.address), wildcards.corpus)


def directions_option(wildcards):
    """For models whose SVCCA is asked for: another number of directions must not compare all the others again."""
    wanted = "svcca" in compared_indexes(wildcards)
    return options(svcca_directions=config["similarity"]["svcca_directions"] if wanted else None)


def control_option(wildcards):
    """For models with an index that has controls."""
    wanted = {"cka", "anc"} & set(compared_indexes(wildcards))
    return options(control=config["similarity"]["control"] if wanted else None)


def embedded_model(run):
    """The files of a model whose vectors are taken; a fine-tuned one lies over the one that it started from."""
    if not isinstance(run, Tuned):
        return {"model": model_file(run)}
    # Both files: one that is temporary goes when no job names it any more.
    tuned = [f"{RESULTS}/{run.path()}/model/{name}" for name in ("model.safetensors", "config.json")]
    return {"model": model_file(model_of(run)), "tuned": tuned}


def distance_inputs(wildcards):
    """A model and held-out sentence pairs of a language with their links."""
    pool = pool_set(config, wildcards.lang)
    files = {"pool": f"{RESULTS}/{pool.path()}", "links": links_file(pool)}
    return files | embedded_model(run_at(wildcards.address))


def distance_options():
    """As many word pairs as the config says, from sentences that no adjusted model of the main setting has seen."""
    paper, seed = config["adjust"], config["seeds"][0]
    return options(pairs=paper["word_pairs"], skip_sample=pair_count(paper["pairs"]), skip_seeds=seed)


def embed_model(files):
    """The model of an embedding job, and what is laid over it."""
    tuned = str(Path(files.tuned[0]).parent) if "tuned" in files.keys() else None
    return options(model=str(Path(files.model).parent), tuned=tuned)


def tuned_of(wildcards):
    return Tuned(wildcards.model, wildcards.recipe, wildcards.source, wildcards.init, int(wildcards.seed))


def vocabulary_file(name):
    """A file beside which the vocabulary of a base model lies, which is there before the model is trained."""
    vocabulary = (trained_model(config, name) or {}).get("vocabulary", name)
    if trained_vocabulary(config, vocabulary):
        return f"{RESULTS}/vocabularies/{vocabulary}/tokenizer.json"
    return model_file(Base(vocabulary))


def model_file(start):
    """The file whose folder is a model to start from: adapted or pretrained here, from the hub, or from a folder."""
    if isinstance(start, Adapted) or CATALOG.made_here(start.name):
        return f"{RESULTS}/{start.path()}/model.safetensors"
    if config["models"] == "hub":
        return downloaded_model(start.name)
    return tracked(f"{config['models']}/{start.name}/model.safetensors")


def model_outputs(folder):
    """What a rule that makes a model writes into its folder."""
    names = {"weights": "model.safetensors", "config": "config.json", "tokenizer": "tokenizer.json"}
    return {name: f"{RESULTS}/models/{folder}/{file}" for name, file in (names | {"training": "training.json"}).items()}


def finetune_inputs(wildcards):
    run = tuned_of(wildcards)
    files = {name: f"{RESULTS}/{data.path()}" for name, data in training_sets(config, run).items()}
    start = model_of(run)
    files["model"] = model_file(start)
    if is_continual(run.init):
        files |= pulled_inputs(start.base, start.adaptation)
    if trials := trials_of(config, run):
        files["trials"] = [f"{RESULTS}/{trial.path()}/training.json" for trial in trials]
    return files


def trial_files(wildcards, input):
    """The trials that decide batch size and learning rate, where these are searched for."""
    return f"--trials {shlex.join(input.trials)}" if "trials" in input.keys() else ""


def pulled_inputs(base, made):
    """The sentence pairs and links of an adjustment, and the model as it was before."""
    pool = pool_set(config, made.lang)
    links = links_file(pool, pieces=made.aggregation == "subword")
    return {"original": model_file(Base(base)), "bitext": f"{RESULTS}/{pool.path()}", "links": links}


def continual_files(wildcards, input):
    """The options of continual learning, where a fine-tuning has it."""
    if not is_continual(wildcards.init):
        return ""
    files = {"bitext": input.bitext, "links": input.links, "reference": str(Path(input.original).parent)}
    named = options(**{f"continual_{name}": file for name, file in files.items()})
    return f"{named} {continual_options(config, tuned_of(wildcards))}"


def adapted_at(wildcards):
    """The adapted model that a job makes."""
    return run_at(f"models/{wildcards.base}+{wildcards.adaptation}/seed{wildcards.seed}")


def text_files(run, split="train"):
    """The prepared texts that a model is trained on, or those held out."""
    return [f"{RESULTS}/{data.path()}" for data in CATALOG.sets_of(run) if data.split == split]


def prepared(sets):
    """The files of prepared sets."""
    return [f"{RESULTS}/{data.path()}" for data in sets]


def named_texts(files):
    """Texts as language=file, the language being the last part of the set's name."""
    return shlex.join(f"{Path(file).parent.name.rsplit('_', 1)[-1]}={file}" for file in files)


def bilstm_at(wildcards):
    return Tuned("bilstm", wildcards.recipe, wildcards.source, "ref", int(wildcards.seed))


def evaluate_inputs(wildcards):
    run = tuned_of(wildcards)
    sets = [f"{RESULTS}/{data.path()}" for data in evaluation_sets(config, run)]
    return {"sets": sets, "model": model_file(model_of(run))}


def bilstm_inputs(wildcards):
    run = bilstm_at(wildcards)
    files = {name: f"{RESULTS}/{data.path()}" for name, data in training_sets(config, run).items()}
    return files | {"sets": [f"{RESULTS}/{data.path()}" for data in evaluation_sets(config, run)]}


def named_sets(run):
    """The sets of an evaluation as name=file, named as in the scores: trees/en_pud/test."""
    sets = evaluation_sets(config, run)
    return shlex.join(f"{data.kind}/{data.name}/{data.split}={RESULTS}/{data.path()}" for data in sets)
