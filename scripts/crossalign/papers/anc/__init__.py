"""The paper `anc`: items, tables, figures, claims."""
