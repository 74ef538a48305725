#!/usr/bin/env python3
"""Trains the reference model: about two hours on two cores, no GPU.

    python models/reference/train.py --kvsweep build/release/bin/kvsweep --work DIR

Two processes, a thread each, share every batch. Checkpoints go to DIR and a run continues from the
last one; the learning curve goes to stdout and to DIR/curve.csv; the finished Hugging Face folder to
--out. Needs models/reference/requirements.txt. Same seed, same batches; weights agree up to
floating-point noise.
"""
import argparse
import csv
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from tokenizers import Tokenizer

import corpus
from export import write_folder
from llama import Config, Llama
from make_tokenizer import END, train_tokenizer, words_in_pieces
from optimizer import optimizers

RANKS = 2
TOKENS_A_STEP = 6144  # of both processes
SEED = 20
HELD = 2000


@dataclass
class Stage:
    steps: int
    context: int
    word_share: float
    drill_share: float
    repeat_share: float


# Short texts first: copying and look-up appear there soonest.
STAGES = [
    Stage(1200, 256, 0.50, 0.30, 0.60),
    Stage(1200, 512, 0.50, 0.15, 0.40),
    Stage(2000, 1024, 0.45, 0.08, 0.15),
]
STEPS = sum(stage.steps for stage in STAGES)
WARMUP = 50
DECAY = 0.45  # the last part of the steps, in which the rates fall linearly to nothing
MATRIX_LR, OTHER_LR = 0.02, 3e-3
SAVE_EVERY, REPORT_EVERY = 100, 100


def stage_at(step):
    for stage in STAGES:
        if step < stage.steps:
            return stage
        step -= stage.steps
    return STAGES[-1]


def rate_at(step):
    return min(1.0, (step + 1) / WARMUP, (STEPS - step) / (DECAY * STEPS))


def prepare(work, kvsweep):
    """Tokenizer and texts, made once and kept in `work`: the first HELD of each kind are for the
    learning curve, the others are trained on."""
    work.mkdir(parents=True, exist_ok=True)
    if (work / "texts.pt").exists():
        return
    words = corpus.generate(kvsweep, "word_problems", 300_000, SEED)
    drills = corpus.generate(kvsweep, "drills", 30_000, SEED)
    recalls = corpus.generate(kvsweep, "recall", 20_000, SEED, 1024)
    texts = [f"Question: {p['question']}\nAnswer: {p['answer']}\n\n" for p in words[:20_000] + drills[:2000]]
    texts += [f"Question: {r['facts']} {r['questions'][0]} Repeat.\nAnswer: {r['answers'][0]}\n\n"
              for r in recalls[:500]]
    tokenizer = train_tokenizer(texts)
    assert not words_in_pieces(tokenizer, texts), words_in_pieces(tokenizer, texts)
    assert tokenizer.token_to_id(END) == corpus.END_ID
    tokenizer.save(str(work / "tokenizer.json"))
    encode = corpus.Encoder(tokenizer)
    encoded = [[encode(corpus.problem_pieces(line)) for line in lines] for lines in (words, drills)]
    torch.save((*encoded, recalls), work / "texts.pt.new")
    os.replace(work / "texts.pt.new", work / "texts.pt")


def loss_of(model, ids, weights):
    """Weighted sum of the token losses."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(ids[:, :-1])
    losses = F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    return (losses * weights.flatten()).sum()


def share_gradients(model):
    """The mean of the gradients of all processes, in one message."""
    gradients = [p.grad for p in model.parameters()]
    flat = torch.cat([g.flatten() for g in gradients])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    norm = flat.norm()
    at = 0
    for g in gradients:
        g.copy_(flat[at:at + g.numel()].view_as(g))
        at += g.numel()
    return norm


@torch.no_grad()
def accuracies(model, batches, context):
    """Share of right tokens where the loss says what they are: teacher-forced, on texts that are not
    trained on."""
    hits = {}
    for name, share in (("words", 1.0), ("recall", 0.0)):
        ids, weights = batches.batch((SEED, 10**9), 8, context, share, 0.0, 0.0)
        right = model(torch.from_numpy(ids[:, :-1])).argmax(-1).numpy() == ids[:, 1:]
        for kind, weight in (("answer", corpus.ANSWER), ("computed", corpus.COMPUTED), ("code", corpus.CODE)):
            chosen = np.isclose(weights, weight)
            if chosen.any() and (name == "words") == (kind != "code"):
                hits[kind] = float(right[chosen].mean())
    return hits


def save(path, step, model, optimizers_, seconds):
    state = {"step": step, "model": model.state_dict(), "seconds": seconds,
             "optimizers": [o.state_dict() for o in optimizers_]}
    torch.save(state, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def train(rank, arguments):
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    dist.init_process_group("gloo", init_method=f"file://{arguments.work}/meet", rank=rank, world_size=RANKS)
    tokenizer = Tokenizer.from_file(str(arguments.work / "tokenizer.json"))
    words, drills, recalls = torch.load(arguments.work / "texts.pt", weights_only=False)
    batches = corpus.Batches(tokenizer, words[HELD:], drills, recalls[HELD:])
    unseen = corpus.Batches(tokenizer, words[:HELD], drills[:HELD], recalls[:HELD])
    model = Llama(Config(tokenizer.get_vocab_size()))
    optimizers_ = optimizers(model, MATRIX_LR, OTHER_LR)
    checkpoint = arguments.work / "checkpoint.pt"
    first, before = 0, 0.0
    if checkpoint.exists():
        state = torch.load(checkpoint)
        first, before = state["step"], state["seconds"]
        model.load_state_dict(state["model"])
        for optimizer, saved in zip(optimizers_, state["optimizers"]):
            optimizer.load_state_dict(saved)
    if rank == 0:
        print(f"{sum(p.numel() for p in model.parameters())} parameters, {STEPS} steps, from step {first}",
              flush=True)
    fast = torch.compile(model) if arguments.compile else model
    start = time.monotonic()
    losses = []
    for step in range(first, STEPS):
        stage = stage_at(step)
        ids, weights = batches.batch((SEED, step, rank), TOKENS_A_STEP // RANKS // stage.context,
                                     stage.context, stage.word_share, stage.drill_share, stage.repeat_share)
        ids, weights = torch.from_numpy(ids), torch.from_numpy(weights)
        # A fixed divisor: the mean weight differs between batches, and dividing by it would make a
        # token count more in a batch of few answers.
        loss = loss_of(fast, ids, weights) / (0.5 * weights.numel())
        loss.backward()
        norm = share_gradients(model)
        for optimizer, base in zip(optimizers_, (MATRIX_LR, OTHER_LR)):
            for group in optimizer.param_groups:
                group["lr"] = base * rate_at(step)
            if torch.isfinite(norm):
                optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        if rank == 0 and (step + 1) % REPORT_EVERY == 0:
            seconds = before + time.monotonic() - start
            report(arguments.work, step + 1, stage, losses[-REPORT_EVERY:], seconds,
                   accuracies(model, unseen, stage.context))
        if rank == 0 and (step + 1) % SAVE_EVERY == 0:
            save(checkpoint, step + 1, model, optimizers_, before + time.monotonic() - start)
    if rank == 0:
        write_folder(arguments.out, model, tokenizer)
        shutil.copy(arguments.work / "curve.csv", arguments.out / "curve.csv")
    dist.barrier()
    dist.destroy_process_group()


def report(work, step, stage, losses, seconds, hits):
    row = {"step": step, "tokens": step * TOKENS_A_STEP, "context": stage.context,
           "minutes": f"{seconds / 60:.1f}", "loss": f"{np.mean(losses):.4f}",
           **{name: f"{hits.get(name, float('nan')):.4f}" for name in ("answer", "computed", "code")}}
    print("  ".join(f"{name} {value}" for name, value in row.items()), flush=True)
    path = work / "curve.csv"
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, row)
        if new:
            writer.writeheader()
        writer.writerow(row)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kvsweep", default="kvsweep", help="the program that generates the texts")
    parser.add_argument("--work", type=Path, required=True, help="folder of checkpoints")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="where the model goes")
    parser.add_argument("--compile", action="store_true", help="torch.compile: needs a C++ compiler")
    arguments = parser.parse_args()
    arguments.work = arguments.work.resolve()
    prepare(arguments.work, arguments.kvsweep)
    (arguments.work / "meet").unlink(missing_ok=True)
    mp.spawn(train, (arguments,), nprocs=RANKS)


if __name__ == "__main__":
    main()
