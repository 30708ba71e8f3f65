"""What readers of monitoring systems share: labels, series, values with units."""
