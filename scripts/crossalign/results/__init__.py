"""What a run has found: scores and similarities, printed numbers, verdicts."""
