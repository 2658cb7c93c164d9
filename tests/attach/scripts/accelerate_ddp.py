"""A loop of one's own with accelerate, which trains by DDP on CPUs (its FSDP is for devices): accelerate_ddp.py OUT"""
import hashlib
import json
import os
import sys

import parts
import torch
from accelerate import Accelerator


def main():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = parts.model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer = accelerator.prepare(model, optimizer)
    tokens, data, losses, norms = parts.tokenizer(), parts.texts(), [], []
    for index in range(6):
        ids = tokens(data[2 * index + accelerator.process_index]["text"], return_tensors="pt")["input_ids"]
        with accelerator.accumulate(model):
            loss = model(input_ids=ids, labels=ids).loss
            accelerator.backward(loss)
            losses.append(loss.item().hex())
            if accelerator.sync_gradients:
                norms.append(float(accelerator.clip_grad_norm_(model.parameters(), 1.0)).hex())
            optimizer.step()
            optimizer.zero_grad()
    total = hashlib.sha256()
    for param in model.parameters():
        total.update(param.detach().contiguous().view(torch.uint8).numpy().tobytes())
    with open(f"{sys.argv[1]}.{os.environ['RANK']}", "w", encoding="utf-8") as file:
        json.dump({"losses": losses, "norms": norms, "weights": total.hexdigest()}, file)
    accelerator.end_training()


if __name__ == "__main__":
    main()
