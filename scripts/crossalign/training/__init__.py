"""The step engine, batches, schedules, checkpoints and the fine-tuning loop."""
