"""The documentation, and what fills the generated parts of it (`python -m docs`)."""
