"""What would help: other layouts of shared arrays, other threads, other global accesses.

`advise` counts layouts on the recorded requests; `prove_best` compiles and replays what it proposes.
"""

from __future__ import annotations

from memsim.suggest.proposals import Advice, Proposal, advise
from memsim.suggest.prove import Proof, prove, prove_best
from memsim.suggest.suggestions import Suggestions, suggest

__all__ = ["Advice", "Proof", "Proposal", "Suggestions", "advise", "prove", "prove_best", "suggest"]
