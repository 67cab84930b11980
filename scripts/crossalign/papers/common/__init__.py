"""Shapes that the papers share: tables, figures, names, colours."""
