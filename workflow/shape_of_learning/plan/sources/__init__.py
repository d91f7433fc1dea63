"""Where checkpoints come from: one class per source, which the plan and the rules ask."""
