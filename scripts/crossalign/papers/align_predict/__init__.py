"""The paper `align-predict`: items, tables, figures, findings."""

PLACE = 1
TITLE = "First Align, then Predict: Understanding the Cross-Lingual Ability of Multilingual BERT"
SOURCE = "Muller, Elazar, Sagot and Seddah, EACL 2021"
