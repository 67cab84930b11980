"""The studies: what each is called and where it appeared. Light, for the rules import it in every plan."""

from typing import NamedTuple


class Study(NamedTuple):
    title: str
    source: str


STUDIES = {
    "align-predict": Study(
        "First Align, then Predict: Understanding the Cross-Lingual Ability of Multilingual BERT",
        "Muller, Elazar, Sagot and Seddah, EACL 2021",
    ),
    "anc": Study(
        "Cross-lingual Similarity of Multilingual Representations Revisited",
        "Del and Fishel, AACL-IJCNLP 2022",
    ),
    "adjust": Study(
        "The Impact of Cross-Lingual Adjustment of Contextual Word Representations on Zero-Shot Transfer",
        "Efimov, Boytsov, Arslanova and Braslavski, ECIR 2023",
    ),
    "talk": Study("Cross Lingual Transfer with Multilingual Language Models", "Muller, seminar talk, 2022"),
}
