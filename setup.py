"""Build script; everything is configured in setup.cfg."""

from setuptools import setup

setup()
