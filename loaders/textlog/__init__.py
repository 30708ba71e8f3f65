"""Text logs: one engine, and one small file for each grammar of lines.

A file is read in blocks (``clean``), every block is cut into numbers and skeletons (``tokens``), each new
skeleton is read once by the grammars (``planner``, ``grammars/``), and all lines that share a skeleton
become rows at once (``rows``). Failures are found on the same skeletons (``signatures``, ``failures``).
"""
