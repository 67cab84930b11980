"""What a run tells while it goes: the progress line, failures, the early look at the page, the words at the end."""
