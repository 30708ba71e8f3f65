"""What figures say about a curve and its findings, as rows of the drawn frame."""
