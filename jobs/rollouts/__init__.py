"""Rollouts: submissions that go out in waves. `rounds` goes on, `verbs` is what operators do."""
