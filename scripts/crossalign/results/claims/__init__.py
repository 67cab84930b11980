"""The vocabulary of claims: quantities, predicates and their noise."""
