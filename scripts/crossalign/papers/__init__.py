"""One room per paper: its items, tables, figures and claims."""
