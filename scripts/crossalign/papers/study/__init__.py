"""The study of any models: items, tables, figures, and what can be said of each model."""

PLACE = 5
TITLE = "Where do languages meet in a model, and which layers carry transfer?"
SOURCE = "the questions of the papers, asked of other models"
