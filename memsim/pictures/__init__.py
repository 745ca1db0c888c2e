"""What a picture shows of an analysis beyond its rows: counted here on the trace, drawn by `memsim.views`."""
