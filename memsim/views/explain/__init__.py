"""One request taken apart, lane by lane: `memsim explain`."""
