"""The config of the published run whose models were pretrained here, with texts and questions that can still be had."""

from crossalign.catalog.config import check, merged


def pretrained_run(root):
    """As it was, but for texts and questions that no reader reads any more."""
    config = merged([root / "docs/results/pretrained-here/config.yaml"])
    config["adjust"]["trained_on"]["qa"] = "squad_en"
    for kind in ("models", "vocabularies"):
        for name, entry in config["pretrain"][kind].items():
            for each in (entry, *entry.get("stages", ())):
                if "text" in each and name not in ("defaults", "mono-*"):
                    each["text"] = "cc100" if each["text"] == "mix" else ["cc100", "wikipedia"]
    check(config)
    return config
