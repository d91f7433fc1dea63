"""Decoders some of whose blocks are dropped, or replaced by affine maps."""
