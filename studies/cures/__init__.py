"""What `memsim suggest` does for launches of public projects: docs/cures.md.

`python -m studies.cures TREES` checks out what the launches need, `tools/public_cures.py` measures them. The
tables have no text of the projects, only where it is, and how a kernel is launched.
"""
