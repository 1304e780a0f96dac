"""The documented interface: what `mixtrain.data_backend` imports from a backend, in the form of `backend.interface`."""
