"""What the scripts share: a tiny random language model, its data and tokenizer (nothing is fetched), and exact results."""
import hashlib
import json
import os
import tempfile

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

WORDS = "<pad> <end> the a model rank shard gathers waits sends keeps and then again".split()


def tokenizer():
    inner = Tokenizer(models.WordLevel({word: index for index, word in enumerate(WORDS)}, unk_token="<end>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    made = PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", eos_token="<end>", unk_token="<end>")
    made.chat_template = "{% for message in messages %}{{ message['content'] }} {% endfor %}"
    return made


def model(seed=7):
    torch.manual_seed(seed)
    return GPT2LMHeadModel(GPT2Config(vocab_size=len(WORDS), n_positions=64, n_embd=32, n_layer=2, n_head=2, use_cache=False,
                                      bos_token_id=1, eos_token_id=1, pad_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0,
                                      attn_pdrop=0.0))


def texts(count=32):
    generator = torch.Generator().manual_seed(3)
    rows = torch.randint(2, len(WORDS), (count, 9), generator=generator).tolist()
    return Dataset.from_list([{"text": " ".join(WORDS[word] for word in row)} for row in rows])


def scratch():
    return tempfile.mkdtemp()


def write(out, trainer, engine=None):
    """Losses and norms as the Trainer logged them, and a digest of the final weights of this rank's part."""
    rows = [{name: value for name, value in row.items() if name in ("loss", "grad_norm")}
            for row in trainer.state.log_history if "loss" in row]
    total = hashlib.sha256()
    for _, param in (engine or trainer.model_wrapped).named_parameters():
        part = getattr(param, "ds_tensor", param)
        part = part.to_local() if hasattr(part, "to_local") else part
        total.update(part.detach().contiguous().view(torch.uint8).numpy().tobytes())
    with open(f"{out}.{os.environ['RANK']}", "w", encoding="utf-8") as file:
        json.dump({"log": [{name: float(value).hex() for name, value in row.items()} for row in rows],
                   "weights": total.hexdigest()}, file)
