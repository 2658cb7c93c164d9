"""A Hugging Face Trainer with a DeepSpeed configuration: hf_trainer.py OUT STAGE [evaluate]"""
import sys

import parts
from transformers import Trainer, TrainingArguments


def main():
    zero = {"stage": int(sys.argv[2]), "reduce_bucket_size": 5000, "stage3_prefetch_bucket_size": 5000,
            "stage3_param_persistence_threshold": 40}
    config = {"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "gradient_clipping": "auto",
              "zero_optimization": zero}
    checked = "evaluate" in sys.argv  # evaluates and saves a checkpoint after each step
    arguments = TrainingArguments(output_dir=parts.scratch(), max_steps=3, per_device_train_batch_size=2,
                                  gradient_accumulation_steps=2, use_cpu=True, deepspeed=config, report_to="none",
                                  save_strategy="steps" if checked else "no", save_steps=1, save_total_limit=1,
                                  eval_strategy="steps" if checked else "no", eval_steps=1, logging_steps=1, ddp_backend="gloo")
    tokens = parts.tokenizer()
    data = parts.texts().map(lambda row: (lambda ids: {"input_ids": ids, "labels": ids})(tokens(row["text"])["input_ids"]),
                             remove_columns=["text"])
    trainer = Trainer(model=parts.model(), args=arguments, train_dataset=data, eval_dataset=data if checked else None)
    trainer.train()
    parts.write(sys.argv[1], trainer)


if __name__ == "__main__":
    main()
