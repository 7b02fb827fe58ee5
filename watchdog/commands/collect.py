"""`pardbg collect`: one node's part of a scan, spoken over standard input and output."""

import click


@click.command(
    epilog="""\b
Example (a scan starts it on every node, e.g. behind `srun --jobid 1234 --overlap`):
  pardbg collect --node n17
"""
)
@click.option("--node", metavar="NAME", help="What this node is called; else as Slurm calls it, else its host name.")
@click.option("--uid", type=click.IntRange(min=0), hidden=True, help="See processes of this user alone.")
def collect(node: str | None, uid: int | None) -> None:
    """Answer a scan's questions about the ranks on this node, until nobody asks any more.

    People do not start this: `pardbg scan` does, on each node of a job. It speaks lines of JSON on standard input and output,
    and ends when its input does.
    """
    from pardbg.watchdog.scan.nodes.serving import Server  # noqa: PLC0415 - `--help` does not wait for it
    from pardbg.watchdog.transport.serving import node_name, serve  # noqa: PLC0415

    name = node_name(node)
    serve(Server(name, uid).answer, node=name)
