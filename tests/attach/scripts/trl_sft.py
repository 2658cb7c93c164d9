"""TRL's SFTTrainer with DeepSpeed stage 3: trl_sft.py OUT"""
import sys

import parts
from trl import SFTConfig, SFTTrainer


def main():
    zero = {"stage": 3, "reduce_bucket_size": 5000, "stage3_prefetch_bucket_size": 5000, "stage3_param_persistence_threshold": 40}
    config = {"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "gradient_clipping": "auto",
              "zero_optimization": zero}
    arguments = SFTConfig(output_dir=parts.scratch(), max_steps=3, per_device_train_batch_size=2, use_cpu=True, deepspeed=config,
                          report_to="none", save_strategy="no", logging_steps=1, ddp_backend="gloo", max_length=32, bf16=False,
                          gradient_checkpointing=False)
    trainer = SFTTrainer(model=parts.model(), args=arguments, train_dataset=parts.texts(), processing_class=parts.tokenizer())
    trainer.train()
    parts.write(sys.argv[1], trainer)


if __name__ == "__main__":
    main()
