"""JAX behind the backend interface: state is threaded through pure functions, and XLA compiles every step."""
