"""Times of steps: where they come from, and what stands out in them."""
