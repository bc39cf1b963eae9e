"""What kernel learners share: kernel, scale and width, batches, the reserve."""
