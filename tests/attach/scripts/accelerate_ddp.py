"""A loop of one's own with accelerate, which trains by DDP on CPUs (its FSDP is for devices): accelerate_ddp.py OUT"""
import accelerate_loop
from accelerate import Accelerator


def main():
    accelerate_loop.train(Accelerator(cpu=True, gradient_accumulation_steps=2))


if __name__ == "__main__":
    main()
