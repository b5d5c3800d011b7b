"""What every test can use."""
