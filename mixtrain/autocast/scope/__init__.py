"""The `with autocast()` of users, and what it replaces in Keras while it is in force."""
