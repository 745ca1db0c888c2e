"""The SIMT emulator: executes a program for all threads of a launch and reports each memory access to a
listener.
"""
