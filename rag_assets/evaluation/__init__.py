"""A run: stages over cases, metrics, slices, and the gate. Nothing here knows Dagster."""
