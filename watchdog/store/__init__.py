"""What has been seen so far, put in order by rank."""
