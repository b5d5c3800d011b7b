"""What stock Celery on Redis gets wrong, shown beside what Fairshift does with the same."""
