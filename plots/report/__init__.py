"""The page, the Markdown and the machine-readable files of a post-mortem."""
