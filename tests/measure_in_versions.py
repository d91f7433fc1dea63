"""Measure a saved model by the command, `measure()` and the callback: `measure_in_versions.py MODEL OUTPUT`.

The Python that runs it has the versions; the numbers are left as three tables in the folder OUTPUT.
"""

import sys
from importlib.metadata import version
from pathlib import Path

import torch
import transformers

import shape_of_learning as sol
from shape_of_learning.command_line import app
from shape_of_learning.corpus.fetch import read_demo_text
from shape_of_learning.training import ShapeCallback

TEXT = 300  # characters
MODEL, OUTPUT = Path(sys.argv[1]), Path(sys.argv[2])
PACKAGES = ("torch", "transformers", "huggingface-hub", "numpy", "scipy", "pandas")

print(*(f"{name} {version(name)}" for name in PACKAGES), sep=", ", flush=True)
texts = [read_demo_text()[start : start + TEXT] for start in range(0, 48 * TEXT, TEXT)]
tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
model = transformers.AutoModelForCausalLM.from_pretrained(MODEL)
OUTPUT.mkdir(parents=True, exist_ok=True)
sol.measure(model, tokenizer, texts).to_csv(OUTPUT / "python.csv", index=False)

torch.manual_seed(0)
rows = [ids[:64] for ids in tokenizer(texts)["input_ids"]]
arguments = transformers.TrainingArguments(
    str(OUTPUT / "trainer"),
    max_steps=4,
    per_device_train_batch_size=4,
    learning_rate=1e-3,
    report_to=[],
    use_cpu=True,
    save_strategy="no",
)
trainer = transformers.Trainer(
    model, arguments, train_dataset=[{"input_ids": row, "labels": row} for row in rows]
)
ShapeCallback(trainer, texts, every=2, table=OUTPUT / "callback.csv", tokenizer=tokenizer)
trainer.train()

files = ("csv", "json", "plot", "explorer")
outputs = [OUTPUT / f"command.{suffix}" for suffix in ("csv", "json", "png", "html")]
options = [word for pair in zip(files, outputs, strict=True) for word in (f"--{pair[0]}", pair[1])]
app(["measure", str(MODEL), "--windows", "48", "--batch-vectors", "2048", *map(str, options)])
