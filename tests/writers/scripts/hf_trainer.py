"""A Hugging Face Trainer with a model of a few numbers. Argument: ``crash`` ends it at step 13, ``resume`` goes on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

os.environ["TENSORBOARD_LOGGING_DIR"] = "out/runs/events"
STEPS_A_SAVE, CRASH_STEP = 5, 13


class Crash(TrainerCallback):
    def on_step_end(self, args: object, state: object, control: object, **_: object) -> None:
        if state.global_step == CRASH_STEP:
            raise RuntimeError("a worker has gone")


def samples(count: int, seed: int) -> list[dict[str, torch.Tensor]]:
    source = torch.Generator().manual_seed(seed)
    tokens = [torch.randint(0, 17, (8,), generator=source) for _ in range(count)]
    return [{"input_ids": t, "labels": t} for t in tokens]


torch.manual_seed(0)
config = GPT2Config(
    vocab_size=17, n_positions=8, n_embd=8, n_layer=1, n_head=1, bos_token_id=0, eos_token_id=0
)
arguments = TrainingArguments(
    output_dir="out",
    num_train_epochs=3,
    per_device_train_batch_size=2,
    learning_rate=1e-2,
    logging_steps=2,
    eval_strategy="epoch",
    save_strategy="steps",
    save_steps=STEPS_A_SAVE,
    report_to=["tensorboard"],
    include_num_input_tokens_seen=True,
    use_cpu=True,
    seed=0,
)
trainer = Trainer(
    model=GPT2LMHeadModel(config),
    args=arguments,
    train_dataset=samples(10, 1),
    eval_dataset={"near": samples(4, 2), "fär": samples(2, 3)},
    callbacks=[Crash()] if sys.argv[1] == "crash" else [],
)
trainer.train(resume_from_checkpoint=Path("out", "checkpoint-10").is_dir() or None)
trainer.save_state()
