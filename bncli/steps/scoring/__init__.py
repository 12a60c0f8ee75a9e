"""What `score` is made of: rows that are scored and counted, here or by the workers of a cluster."""
