"""memsim beside its peers: a section of docs/performance.md.

`python -m docs.peers` installs cuxray and ptxas in an environment of their own, lets both tools judge the
kernels of the catalogue, and keeps the figures in docs/peers/measured.json; `docs/generate.py` makes the
tables from that file.
"""
