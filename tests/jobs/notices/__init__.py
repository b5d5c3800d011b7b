"""Tests of jobs/notices: real receivers on sockets of their own."""
