"""The paper `anc`: items, tables, figures, findings."""

PLACE = 2
TITLE = "Cross-lingual Similarity of Multilingual Representations Revisited"
SOURCE = "Del and Fishel, AACL-IJCNLP 2022"
