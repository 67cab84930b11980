"""The claims of the papers as predicates over our tables; docs/verdicts.md tells how to read and extend them."""
