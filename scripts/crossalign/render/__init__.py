"""Tables, figures and verdicts: results in, what people read out."""
