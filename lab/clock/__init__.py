"""The probe for GPUs without counters: cycles of repeated instructions, by a program of one file.

`memsim probe --export` writes that file. It needs Python and NVIDIA's driver, no other package and no
profiler; what it records is judged here.
"""
