"""Which container of a pod trains. Pure."""

from pardbg.collectors.parsing.kubernetes_record import KubernetesContainer, KubernetesPod

SIDECARS = frozenset(
    {
        *("istio-proxy", "linkerd-proxy", "envoy", "envoy-sidecar", "cilium-envoy", "aws-vpc-cni", "cloud-sql-proxy"),
        *("vault-agent", "vault-agent-init", "gke-gcsfuse-sidecar", "gcsfuse-sidecar", "s3-mount", "juicefs-sidecar"),
        *("fluent-bit", "fluentd", "filebeat", "promtail", "vector", "datadog-agent", "otc-container", "otel-collector"),
        *("dcgm-exporter", "node-exporter", "tensorboard", "metrics-logger-and-collector", "git-sync", "autoscaler"),
        *("tcpx-daemon", "tcpxo-daemon", "tcpgpudmarxd", "gpu-monitor", "pause", "pardbg", "pardbg-agent"),
    }
)
"""Names under which others' injectors add containers to a pod."""

TRAINERS = frozenset(
    {
        *("pytorch", "trainer", "train", "training", "main", "node", "worker", "master", "launcher", "mpi", "leader"),
        *("ray-worker", "ray-head", "jax", "jax-tpu", "tensorflow", "deepspeed", "megatron", "nemo", "torchrun"),
    }
)
"""Names that operators ask for, or people give to the container that trains."""


def find_trainer(pod: KubernetesPod) -> KubernetesContainer | None:
    """The container that trains; None if the pod has none at all.

    It is no known sidecar. Of several the only one with a device, else the only one with a telling name, else the one that
    kubectl takes by default, else the first.
    """
    candidates = [container for container in pod.containers if container.name not in SIDECARS] or list(pod.containers)
    if not candidates:
        return None
    for chosen in (
        [container for container in candidates if container.has_device],
        [container for container in candidates if container.name in TRAINERS],
    ):
        if len(chosen) == 1:
            return chosen[0]
        candidates = chosen or candidates
    return next((container for container in candidates if container.name == pod.default_container), candidates[0])
