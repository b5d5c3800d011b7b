"""What every other package uses: settings, errors, ids, states, SQL, checks of inputs."""
