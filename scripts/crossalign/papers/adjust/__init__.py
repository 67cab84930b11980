"""The paper `adjust`: items, tables, figures, findings."""

PLACE = 3
TITLE = "The Impact of Cross-Lingual Adjustment of Contextual Word Representations on Zero-Shot Transfer"
SOURCE = "Efimov, Boytsov, Arslanova and Braslavski, ECIR 2023"
