"""The loop of one's own that the scripts with accelerate share: six micro-steps, two to a step, then what came out."""
import hashlib
import json
import os
import sys

import parts
import torch


def train(accelerator):
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
    with open(f"{sys.argv[1]}.{os.environ['RANK']}", "w", encoding="utf-8") as file:
        json.dump({"losses": losses, "norms": norms, "weights": digest(model)}, file)
    accelerator.end_training()


def digest(model):
    """Of this rank's part of the weights."""
    total = hashlib.sha256()
    for param in model.parameters():
        part = getattr(param, "ds_tensor", param)
        part = part.to_local() if hasattr(part, "to_local") else part
        total.update(part.detach().contiguous().view(torch.uint8).numpy().tobytes())
    return total.hexdigest()
