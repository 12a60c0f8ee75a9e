"""What an evaluation reports, and the pictures that it draws."""
