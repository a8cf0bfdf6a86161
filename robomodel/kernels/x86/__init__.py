"""Straight-line programs as machine code of x86-64 with AVX-512, without a compiler."""
