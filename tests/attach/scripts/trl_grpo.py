"""TRL's GRPOTrainer, generation and a reference model, with DeepSpeed: trl_grpo.py OUT STAGE"""
import sys

import parts
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer


def reward(completions, **_):
    return [float(len(set(text.split()))) for text in completions]


def main():
    zero = {"stage": int(sys.argv[2]), "reduce_bucket_size": 5000, "stage3_prefetch_bucket_size": 5000,
            "stage3_param_persistence_threshold": 40}
    config = {"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "gradient_clipping": "auto",
              "zero_optimization": zero}
    folder = parts.scratch()
    parts.model().save_pretrained(folder)  # the reference is read from where the policy came from
    parts.tokenizer().save_pretrained(folder)
    arguments = GRPOConfig(output_dir=parts.scratch(), max_steps=2, per_device_train_batch_size=2, num_generations=2, beta=0.1,
                           max_completion_length=6, use_cpu=True, deepspeed=config, report_to="none", save_strategy="no",
                           logging_steps=1, ddp_backend="gloo", bf16=False, gradient_checkpointing=False)
    prompts = Dataset.from_list([{"prompt": row["text"]} for row in parts.texts()])
    trainer = GRPOTrainer(model=folder, reward_funcs=reward, args=arguments, train_dataset=prompts,
                          processing_class=parts.tokenizer())
    trainer.train()
    parts.write(sys.argv[1], trainer)


if __name__ == "__main__":
    main()
