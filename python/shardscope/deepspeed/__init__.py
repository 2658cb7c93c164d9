"""DeepSpeed: its engine, stage 3, stages 1 and 2."""
