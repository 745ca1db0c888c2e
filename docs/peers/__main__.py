"""`python -m docs.peers` measures everything anew; it takes some minutes and needs a package index."""

from docs.peers.measure import measure

if __name__ == "__main__":
    measure()
