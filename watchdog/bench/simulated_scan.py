"""A scan of a simulated job in one process: what its nodes tell, what they are asked after that, and the report."""

from pardbg.watchdog.bench.simulated_nodes import SimulatedNodes
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.scan.entries import add_entries, choose_entries
from pardbg.watchdog.sim.recipe import Recipe
from pardbg.watchdog.sim.truth import Truth
from pardbg.watchdog.store.sharing import Sharing
from pardbg.watchdog.store.view import EvidenceView


def scan_simulated(recipe: Recipe) -> tuple[Report, Truth]:
    """Simulates the job, and diagnoses it as a scan of many nodes does."""
    simulated, sharing = SimulatedNodes(recipe), Sharing()
    evidence = [simulated.job, *(sharing.of(item) for _, seen in simulated.nodes() for item in seen)]
    question = choose_entries(Situation.of(EvidenceView.of(evidence)))
    cuts = simulated.entries(question.wanted)
    whole = EvidenceView.of(add_entries(evidence, question, cuts, 0))
    return judge(whole, Circumstances(decided_at="1970-01-01T00:00:00Z")), simulated.truth
