"""The paper `align-predict`: items, tables, figures, claims."""
