"""The paper `talk`: items, tables, figures, claims."""
