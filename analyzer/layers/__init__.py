"""Gradients, weights and activations layer by layer, from histograms or from scalars a layer."""
