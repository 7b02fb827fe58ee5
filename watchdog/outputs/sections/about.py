"""The small print: layout, software, when the samples were taken, and by which pardbg."""

from pardbg.watchdog.model.report import LayoutRef, Report, Software
from pardbg.watchdog.outputs.blocks import Depth, Fact, Facts, Section
from pardbg.watchdog.outputs.phrases import list_names, spell_duration

_HOSTS_SHOWN = 4


def about(report: Report, depth: Depth) -> Section | None:
    """Say under which conditions the report was made; too much for a brief one."""
    if depth is Depth.BRIEF:
        return None
    facts = [Fact(label="layout", value=_layout(report.layout))] if report.layout else []
    facts += [Fact(label="software", value=_software(software)) for software in report.software]
    facts += [Fact(label="sampled", value=", ".join(report.sampled_at))] if report.sampled_at else []
    decided = f"{report.decided_at}, after {spell_duration(report.took_s)}, by pardbg {report.pardbg_version}"
    return Section(title="About this report", blocks=(Facts(facts=(*facts, Fact(label="decided", value=decided))),))


def _layout(layout: LayoutRef) -> str:
    axes = ", ".join(f"{name} {axis.size} (stride {axis.stride})" for name, axis in layout.axes.items())
    return f"{axes}; from {layout.source}"


def _software(software: Software) -> str:
    versions = {"torch": software.torch, "NCCL": software.nccl, "driver": software.driver, "Python": software.python}
    known = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    hosts = f" on {list_names(software.hosts, _HOSTS_SHOWN)}" if software.hosts else ""
    return f"{known or 'no version known'}{hosts}"
