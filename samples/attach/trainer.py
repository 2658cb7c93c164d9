"""A Hugging Face Trainer with a DeepSpeed configuration on two CPU ranks; a tiny random model, nothing is fetched:

    DS_ACCELERATOR=cpu shardscope attach --record trainer.zscope -- torchrun --nproc-per-node 2 samples/attach/trainer.py
"""
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

ZERO3 = {"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "gradient_clipping": "auto",
         "zero_optimization": {"stage": 3, "reduce_bucket_size": 50000, "stage3_prefetch_bucket_size": 50000}}


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        tokens = torch.randint(256, (32,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens}


def main():
    arguments = TrainingArguments(output_dir=tempfile.mkdtemp(), max_steps=6, per_device_train_batch_size=4, use_cpu=True,
                                  deepspeed=ZERO3, report_to="none", save_strategy="no", logging_steps=1, ddp_backend="gloo")
    model = GPT2LMHeadModel(GPT2Config(vocab_size=256, n_positions=32, n_embd=64, n_layer=3, n_head=4, use_cache=False))
    Trainer(model=model, args=arguments, train_dataset=Tokens()).train()


if __name__ == "__main__":
    main()
