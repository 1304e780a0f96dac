"""JAX behind the seam: state is threaded through pure functions, and XLA compiles every step."""
