"""What Prometheus alerts about. Each alert has a heading in `runbooks.md`; `rules/` holds what is generated from here."""

from pardbg.dashboards.alert import Alert, Severity
from pardbg.dashboards.moe_alerts import MOE_ALERTS

AGENTS = 'job=~".*pardbg.*"'
"""How agents are told from other targets: by the name of their scrape job."""

_CLAIM = """{{ with query (printf "pardbg_incident_info{incident=%q}" $labels.incident) }}{{ . | first | label "claim" }}"""

ALERTS = (
    # The claim is asked for when the text is written: as a label, each new scan of a hang would be another alert. The second
    # half is for a job whose leading agent is gone, and waits for a minute: agents are not scraped at one moment.
    Alert(
        name="PardbgJobHung",
        expr="""\
max by (job_id, world, attempt, incident, host, kind, cause, culprit) (pardbg_incident_info)
or
(
  max by (job_id, world, attempt) (pardbg_job_state{state="hung"} == 1)
  and
  max by (job_id, world, attempt) (pardbg_job_state{state="hung"} offset 1m == 1)
  unless on (job_id, world)
  pardbg_incident_info
)""",
        severity=Severity.CRITICAL,
        summary="Job {{ $labels.job_id }} hangs.",
        description=_CLAIM
        + "{{ with $labels.incident }} (incident {{ . }}){{ end }}"
        + "{{ else }}Its ranks are silent, and the agent that knew why does not answer: "
        + "pardbg scan --job {{ $labels.job_id }}{{ end }}",
    ),
    Alert(
        name="PardbgJobSuspect",
        expr="""\
max by (job_id, world, attempt) (pardbg_job_state{state="suspect"} == 1)
unless on (job_id, world)
pardbg_job_state{state="hung"} == 1""",
        hold="5m",
        severity=Severity.WARNING,
        summary="Job {{ $labels.job_id }} is silent for longer than it ever was.",
        description="Ranks of job {{ $labels.job_id }} show no sign of life for minutes, and no fault was found: "
        "pardbg scan --job {{ $labels.job_id }}",
    ),
    Alert(
        name="PardbgAgentDown",
        expr=f"""\
up{{{AGENTS}}} == 0
or
up == 0 and on (job, instance) max_over_time(pardbg_build_info[1h])
or
absent(max_over_time(pardbg_build_info[1h])) unless on () (up{{{AGENTS}}} == 0)""",
        hold="3m",
        severity=Severity.WARNING,
        summary="{{ with $labels.instance }}The pardbg agent at {{ . }}{{ else }}Every pardbg agent{{ end }} is silent.",
        description="{{ with $labels.instance }}Prometheus cannot scrape {{ . }}: nobody watches the jobs of that host."
        "{{ else }}Prometheus scrapes no pardbg agent: nobody watches any job.{{ end }}",
    ),
    Alert(
        name="PardbgAgentBlind",
        expr="""\
max by (job_id, world, host) (pardbg_job_blind) == 1
or
max by (host) (changes(pardbg_agent_snapshot_timestamp_seconds[5m])) == 0""",
        hold="5m",
        severity=Severity.WARNING,
        summary="The pardbg agent of {{ $labels.host }} sees nothing{{ with $labels.job_id }} of job {{ . }}{{ end }}.",
        description="{{ with $labels.job_id }}Of no rank of job {{ . }} on {{ $labels.host }} a sign of life can be seen: "
        "on that host, pardbg doctor{{ else }}The agent of {{ $labels.host }} answers, and has not looked around for minutes."
        "{{ end }}",
    ),
    *MOE_ALERTS,
)
