"""How far it goes: what a durable run costs, and a simulation of more workers and cores.

docs/operate/scale.md has the figures. `python -m tests.benchmarks.scale --help` simulates.
"""
