"""The paper `adjust`: items, tables, figures, claims."""
