"""What the packages of `envs/` are called by conda, by pip and in an import."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Names:
    """Names of one package where they differ from conda's."""

    pip: str
    module: str


# Only what is written here can be listed in an environment file: an unknown name is never guessed.
NAMES = {
    "accelerate": Names("accelerate", "accelerate"),
    "datasets": Names("datasets", "datasets"),
    "filelock": Names("filelock", "filelock"),
    "h5py": Names("h5py", "h5py"),
    "httpx2": Names("httpx2", "httpx2"),
    "huggingface_hub": Names("huggingface-hub", "huggingface_hub"),
    "matplotlib-base": Names("matplotlib", "matplotlib"),
    "mwparserfromhell": Names("mwparserfromhell", "mwparserfromhell"),
    "numpy": Names("numpy", "numpy"),
    "pandas": Names("pandas", "pandas"),
    "pooch": Names("pooch", "pooch"),
    "pydantic": Names("pydantic", "pydantic"),
    "pytorch": Names("torch", "torch"),
    "pyyaml": Names("pyyaml", "yaml"),
    "rocrate": Names("rocrate", "rocrate"),
    "safetensors": Names("safetensors", "safetensors"),
    "scipy": Names("scipy", "scipy"),
    "scikit-learn": Names("scikit-learn", "sklearn"),
    "threadpoolctl": Names("threadpoolctl", "threadpoolctl"),
    "seaborn": Names("seaborn", "seaborn"),
    "tokenizers": Names("tokenizers", "tokenizers"),
    "transformers": Names("transformers", "transformers"),
    "vl-convert-python": Names("vl-convert-python", "vl_convert"),
}
