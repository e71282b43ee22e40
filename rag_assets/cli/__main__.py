"""`python -m rag_assets.cli`."""

from rag_assets.cli import main

if __name__ == "__main__":
    main()
