"""The pages of jobs: their list, one job, and the verbs of one job."""
