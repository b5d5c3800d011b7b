"""What every other package uses: settings, errors, ids, states, SQL, checks of inputs.

`conf` validates the settings, each with its limits; `jobs/checks` checks that they fit together.
"""
