"""Tests of jobs/system/notices: real receivers on sockets of their own."""
