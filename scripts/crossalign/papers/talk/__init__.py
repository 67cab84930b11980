"""The paper `talk`: items, tables, figures, findings."""

PLACE = 4
TITLE = "Cross Lingual Transfer with Multilingual Language Models"
SOURCE = "Muller, seminar talk, 2022"
