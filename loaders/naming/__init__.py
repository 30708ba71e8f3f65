"""What a tag means: the table of canonical metrics and the reading of the words in a tag."""
