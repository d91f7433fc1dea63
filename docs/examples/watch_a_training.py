"""Train a small model on Python's own documentation, and watch its shape: `python docs/examples/watch_a_training.py`.

It needs no network and takes half a minute. `shape-of-learning explore shape.csv shape.html` makes a page of the table.
"""

import sys

import tokenizers
import transformers

from shape_of_learning.corpus.fetch import read_demo_text
from shape_of_learning.training import ShapeCallback

TABLE = sys.argv[1] if len(sys.argv) > 1 else "shape.csv"

text = read_demo_text()
bpe = tokenizers.ByteLevelBPETokenizer()
bpe.train_from_iterator([text], vocab_size=1000, show_progress=False)
tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=bpe._tokenizer)
tokenizer.add_special_tokens({"pad_token": "<pad>"})

config = transformers.GPTNeoXConfig(
    vocab_size=len(tokenizer),
    hidden_size=64,
    num_hidden_layers=4,
    num_attention_heads=4,
    intermediate_size=256,
    max_position_embeddings=256,
)
ids = tokenizer(text, verbose=False)["input_ids"]
rows = [ids[start : start + 128] for start in range(0, 128 * 400, 128)]
arguments = transformers.TrainingArguments(
    "trainer",
    max_steps=60,
    per_device_train_batch_size=4,
    learning_rate=1e-3,
    logging_steps=20,
    save_strategy="no",
    report_to=[],  # such as ["tensorboard"] or ["wandb"], which get the measures, too
    use_cpu=True,
)
probe_texts = [text[start : start + 400] for start in range(0, 400 * 64, 400)]
probe = ShapeCallback(probe_texts, every=20, table=TABLE, bands={"anisotropy": (0, 0.5)})
trainer = transformers.Trainer(
    transformers.GPTNeoXForCausalLM(config),
    arguments,
    train_dataset=[{"input_ids": row, "labels": row} for row in rows],
    processing_class=tokenizer,
    callbacks=[probe],
)
trainer.train()
