"""The words of other libraries, thin over the rest."""
