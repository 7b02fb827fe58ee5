"""The import names of installed libraries that a training process is likely to hold, where a file name alone does not tell.

Python's own modules come from the interpreter that reads. Names of packages that programs often choose for their own code
(``data``, ``models``, ``utils``, ``core``) are left out on purpose: to take training code for a library hides it. ``datasets``
is here all the same: whoever's it is, it loads data.
"""

import sys

STANDARD = frozenset(sys.stdlib_module_names)

INSTALLED = frozenset(
    """
    absl accelerate adlfs aim aiobotocore aiohttp albumentations amp_C anthropic anyio apex attr attrs azure backoff
    bagua beartype bitsandbytes boto3 botocore bs4 byteps cachecontrol cachetools catboost cattrs certifi cffi chardet
    charset_normalizer clearml click cloudpathlib cloudpickle colossalai comet_ml composer cryptography cupy cupyx
    cutlass cv2 cython dali datasets dateutil debugpy decorator deep_ep deep_gemm deepspeed detectron2 dgl diffusers
    dill dlrover docker dvclive einops espnet etcd3 evaluate execnet fairscale fairseq faiss fasteners fastparquet
    fbgemm_gpu ffcv filelock fire fla flash_attn flash_attn_interface flashinfer fsspec functorch gcsfs gevent google
    grain greenlet grpc gymnasium h11 h2 h5py haiku horovod httpcore httpx huggingface_hub hydra imageio ipdb ipykernel
    IPython jax jaxlib jaxtyping jedi jinja2 jiwer joblib jsonlines kfp kornia kubernetes lance lancedb lhotse
    liger_kernel lightgbm lightning lightning_fabric litdata litgpt llmfoundry llvmlite lm_eval lmdb loguru lxml
    markupsafe matplotlib mcore megfile minio mlflow mmap_ninja mmcv mmengine modelscope monai mosaicml mpi4py mscclpp
    msgpack msgspec multiprocess nemo neptune neptune_scale networkx nixl nltk numba numcodecs numpy nvidia
    nvidia_resiliency_ext nvshmem nvtx omegaconf onnx onnxruntime open_clip openai OpenSSL opentelemetry optree optuna
    orbax orjson oss2 ossfs outlines packaging paddle pandas paramiko parso peft petastorm pexpect PIL polars
    portalocker pplx_kernels prefect prometheus_client prompt_toolkit psutil psycopg psycopg2 psycopg_pool pudb pyarrow
    pycocotools pycparser pydantic pydevd pygments pymongo pynvml pytorch3d pytorch_lightning pytz ray redis regex
    requests retrying rich ring_flash_attn s3fs s3torchconnector s3transfer sacrebleu safetensors scipy seaborn
    sentencepiece sentry_sdk setuptools sglang skimage sklearn smart_open sniffio soundfile spacy speechbrain sqlalchemy
    streaming swanlab sympy tblib tenacity tensorboard tensorboardX tensordict tensorflow tensorflow_datasets tensorpipe
    tensorstore tiktoken tilelang timm tokenizers torch torch_geometric torch_tensorrt torch_xla torchao torchaudio
    torchdata torchft torchgen torchmetrics torchrec torchsnapshot torchtext torchtitan torchtnt torchtune torchvision
    torchx tornado tqdm trackio traitlets transformer_engine transformers tree trio triton trl typeguard tzdata ucp ucxx
    ujson urllib3 uvloop vllm vmoe wandb webdataset websocket websockets werkzeug wids wrapt xformers xgboost yaml yarl
    zarr zmq zstandard
    """.split()  # noqa: SIM905 - one name a line would be 180 lines
)

NAMESPACES = ("azure", "google/cloud", "google", "megatron", "mpl_toolkits", "nvidia")
"""Folders without an ``__init__.py`` that hold packages of their own: py-spy's short names leave them out."""
