"""One training told by several sources: which curves are the same, which stays, what the others lend it."""
