"""The GPUs of a job, by rank: those that stand out."""

from pardbg.dashboards.panel import Column, Panel, Query, Row, Shape, ShownUnit
from pardbg.dashboards.queries import JOB, MOST_SERIES, least, most

NO_GPU = "No GPU seen"
_NAME = "rank {{rank}}"
_BY = "max by (world, rank, host, gpu)"


def _curves(title: str, description: str, expr: str, unit: ShownUnit) -> Panel:
    return Panel(
        title=title,
        description=description,
        shape=Shape.SERIES,
        queries=(Query(expr, _NAME),),
        unit=unit,
        empty=NO_GPU,
        width=8,
    )


def _of(name: str) -> str:
    return f"{_BY} (pardbg_gpu_{name}{{{JOB}}})"


_ERRORS = (
    ("pcie_replays_total", "PCIe replays", ""),
    ("nvlink_errors_total", "NVLink errors", ""),
    ("ecc_errors_total", "memory errors, uncorrected", ', error="uncorrected"'),
)

GPUS = Row(
    "GPUs",
    (
        Panel(
            title="GPUs that are ill",
            description="The last Xid that the driver reported of each GPU, those that it has lost or that do not answer (1), "
            "and NVLinks that went down.",
            shape=Shape.TABLE,
            queries=(
                Query(f"{_BY[:-1]}, UUID) (pardbg_gpu_last_xid{{{JOB}}})"),
                Query(f"{_BY[:-1]}, UUID) (pardbg_gpu_lost{{{JOB}}} == 1 or pardbg_gpu_silent{{{JOB}}} == 1)"),
                Query(f"{_BY[:-1]}, UUID) (pardbg_gpu_nvlinks_down{{{JOB}}} > 0)"),
            ),
            empty="None",
            unit=ShownUnit.TEXT,
            columns=(
                Column("rank", "rank", 80),
                Column("host", "host", 200),
                Column("gpu", "GPU", 80),
                Column("Value #A", "Xid", 80),
                Column("Value #B", "lost", 80),
                Column("Value #C", "links down", 90),
                Column("UUID", "UUID"),
            ),
            width=24,
            height=5,
        ),
        _curves(
            "Least busy GPUs",
            f"Share of time in which a kernel was on the GPU, the {MOST_SERIES} lowest. A GPU that waits in NCCL is "
            "at 100 %, too: look at the power beside it.",
            least(_of("utilization_ratio")),
            ShownUnit.SHARE,
        ),
        _curves(
            "Lowest power",
            "Power, as a share of what the GPU may draw. A GPU that is busy and draws little waits for others.",
            least(f"{_of('power_watts')} / {_of('power_limit_watts')}"),
            ShownUnit.SHARE,
        ),
        _curves(
            "Lowest clocks",
            "Clock of the processors. The panel of reasons says what holds it down.",
            least(_of("sm_clock_hertz")),
            ShownUnit.HERTZ,
        ),
        _curves("Hottest GPUs", "Heat of the chip.", most(_of("temperature_celsius")), ShownUnit.CELSIUS),
        _curves("Hottest memory", "Heat of the GPU's memory.", most(_of("memory_temperature_celsius")), ShownUnit.CELSIUS),
        _curves(
            "Fullest memory",
            "Memory in use, as a share of what there is.",
            most(f"{_of('memory_used_bytes')} / {_of('memory_total_bytes')}"),
            ShownUnit.SHARE,
        ),
        Panel(
            title="What holds clocks down",
            description="GPUs for each reason. The power cap is normal where work is hard; heat and power brakes are not.",
            shape=Shape.SERIES,
            queries=(Query(f"count by (reason) (pardbg_gpu_clock_reason{{{JOB}}})", "{{reason}}"),),
            empty="Nothing",
            width=8,
        ),
        Panel(
            title="Errors a minute",
            description="Of all GPUs of the job together. Some are corrected, and cost time only.",
            shape=Shape.SERIES,
            queries=tuple(
                Query(f"60 * sum(rate(pardbg_gpu_{name}{{{JOB}{more}}}[$__rate_interval]))", legend)
                for name, legend, more in _ERRORS
            ),
            empty=NO_GPU,
            width=8,
        ),
    ),
)
