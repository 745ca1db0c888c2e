"""What memsim's time and memory grow with: a section of docs/performance.md.

`python -m docs.growth` measures, each launch in a process of its own, and keeps the figures in
docs/growth/measured.json; `docs/generate.py` makes the picture and the table from that file.
"""
