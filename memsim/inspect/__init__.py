"""What pictures need beyond the rows of an `Analysis`: worked out here, so that no picture computes a count.

In: an `Analysis` (its trace has the addresses). Out: how each site uses the banks (`banks`), one request
taken apart (`request`), where the words of an array lie and who wrote them (`layout`), what moves where
(`flow`).
Left out on purpose: colours, labels and formats (`memsim.report`).
"""
