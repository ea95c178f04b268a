"""Pure mathematics of world-model GRPO: tensors in, tensors out."""
