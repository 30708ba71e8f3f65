"""How a prepared figure becomes artists: type, strokes, scales and layout by the inch."""
