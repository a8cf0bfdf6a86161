"""Programs as LLVM's assembly, and machine code of them by llvmlite."""
